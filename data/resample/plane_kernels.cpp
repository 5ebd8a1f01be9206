#include "data/resample/plane_kernels.h"

#include "data/resample/kernels.h"

// Vectors in structs need a size that is known at compile time.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/resample/plane_kernels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace precast::data::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kBits = kSumBits + kColumnWeightBits;
constexpr std::int32_t kHalf = 1 << (kBits - 1);

#if HWY_TARGET == HWY_SCALAR

PlaneLayout layout_simd() {
  return {.outputs = 4, .values = 8, .windows = 1};
}

void convolve_plane_columns_simd(const std::int16_t* const* sums, const PlaneWeights& columns,
                                 std::uint8_t* const* out) {
  for (std::size_t at = 0; at < columns.windows * 4; ++at) {
    const std::size_t window = at / 4;
    if (at % 4 >= columns.used) continue;
    const std::size_t offset =
        static_cast<std::size_t>(columns.start[window]) + (columns.indices[at] & 0xFFU) / 2;
    for (std::size_t c = 0; c < 3; ++c) {
      std::int32_t sum = kHalf;
      for (std::size_t pair = 0; pair < columns.pairs; ++pair) {
        const std::uint32_t weight = columns.weights[(window * columns.pairs + pair) * 4 + at % 4];
        const std::int16_t* value = sums[c] + offset + 2 * pair;
        sum += static_cast<std::int16_t>(weight & 0xFFFFU) * value[0] +
               static_cast<std::int16_t>(weight >> 16) * value[1];
      }
      out[c][window * columns.used + at % 4] = static_cast<std::uint8_t>(sum >> kBits);
    }
  }
}

#else

#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
// A window is one or two vectors.
using Sums = hn::FixedTag<std::int32_t, 16>;
constexpr PlaneLayout kLayout = {.outputs = 16, .values = 64, .windows = 1};
#elif HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
// A window is a block of 128 bits; a vector has two windows.
using Sums = hn::FixedTag<std::int32_t, 8>;
constexpr PlaneLayout kLayout = {.outputs = 4, .values = 8, .windows = 2};
#else
using Sums = hn::FixedTag<std::int32_t, 4>;
constexpr PlaneLayout kLayout = {.outputs = 4, .values = 8, .windows = 1};
#endif
using Words = hn::Repartition<std::int16_t, Sums>;
constexpr std::size_t kWindows = kLayout.windows;

PlaneLayout layout_simd() {
  return kLayout;
}

/// Selects the pairs at `indices` in the window at `from`. With two windows per vector, the second
/// window is at `other`.
template <bool kNarrow>
HWY_INLINE hn::Vec<Words> pick(const std::int16_t* from, [[maybe_unused]] const std::int16_t* other,
                               hn::Vec<Words> indices) {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  const auto first = hn::LoadU(Words(), from);
  if constexpr (kNarrow) {
    return hn::Vec<Words>{_mm512_permutexvar_epi16(indices.raw, first.raw)};
  } else {
    const auto second = hn::LoadU(Words(), from + 32);
    return hn::Vec<Words>{_mm512_permutex2var_epi16(first.raw, indices.raw, second.raw)};
  }
#else
  const hn::FixedTag<std::int16_t, 8> d_block;
  const auto lower = hn::LoadU(d_block, from);
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  const auto values = hn::Combine(Words(), hn::LoadU(d_block, other), lower);
#else
  const auto values = lower;
#endif
  return hn::TableLookupBytes(values, indices);
#endif
}

/// kPairs is the number of pairs, or 0 if this number is known only at run time.
template <bool kNarrow, std::size_t kPairs>
void convolve(const std::int16_t* const* sums, const PlaneWeights& columns,
              std::uint8_t* const* out) {
  const hn::Rebind<std::uint8_t, Sums> d_u8;
  const hn::Repartition<std::uint32_t, Sums> d_u32;
  constexpr std::size_t kLanes = kLayout.outputs * kWindows;
  const std::size_t pairs = kPairs == 0 ? columns.pairs : kPairs;
  const std::uint32_t* HWY_RESTRICT weights = columns.weights.data();
  for (std::size_t w = 0; w < columns.windows; w += kWindows) {
    const auto indices =
        hn::BitCast(Words(), hn::LoadU(d_u32, columns.indices.data() + w * kLayout.outputs));
    const std::int32_t start = columns.start[w];
    const std::int32_t other = columns.start[w + kWindows - 1];
    for (std::size_t c = 0; c < 3; ++c) {
      auto even = hn::Set(Sums(), kHalf);
      auto odd = hn::Zero(Sums());
      for (std::size_t pair = 0; pair < pairs; ++pair) {
        const auto values =
            pick<kNarrow>(sums[c] + start + 2 * pair, sums[c] + other + 2 * pair, indices);
        const auto weight = hn::BitCast(Words(), hn::LoadU(d_u32, weights + pair * kLanes));
        even = hn::ReorderWidenMulAccumulate(Sums(), values, weight, even, odd);
      }
      const auto sum = hn::ShiftRight<kBits>(hn::RearrangeToOddPlusEven(even, odd));
      const auto bytes = hn::DemoteTo(d_u8, sum);
      std::uint8_t* to = out[c] + w * columns.used;
      if constexpr (kWindows == 1) {
        hn::StoreU(bytes, d_u8, to);
      } else {
        const hn::Half<decltype(d_u8)> d_half;
        hn::StoreU(hn::LowerHalf(d_half, bytes), d_half, to);
        hn::StoreU(hn::UpperHalf(d_half, bytes), d_half, to + columns.used);
      }
    }
    weights += pairs * kLanes;
  }
}

template <bool kNarrow>
void convolve_pairs(const std::int16_t* const* sums, const PlaneWeights& columns,
                    std::uint8_t* const* out) {
  switch (columns.pairs) {
    case 1:
      return convolve<kNarrow, 1>(sums, columns, out);
    case 2:
      return convolve<kNarrow, 2>(sums, columns, out);
    case 3:
      return convolve<kNarrow, 3>(sums, columns, out);
    default:
      return convolve<kNarrow, 0>(sums, columns, out);
  }
}

void convolve_plane_columns_simd(const std::int16_t* const* sums, const PlaneWeights& columns,
                                 std::uint8_t* const* out) {
  if (columns.narrow) return convolve_pairs<true>(sums, columns, out);
  convolve_pairs<false>(sums, columns, out);
}

#endif

void interleave_planes_simd(const std::uint8_t* const* planes, std::size_t count,
                            std::uint8_t* HWY_RESTRICT out) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto interleave_at = [&](std::size_t at) {
    hn::StoreInterleaved3(hn::LoadU(d, planes[0] + at), hn::LoadU(d, planes[1] + at),
                          hn::LoadU(d, planes[2] + at), d, out + 3 * at);
  };
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) interleave_at(i);
  if (i == count) return;
  if (count >= lanes) return interleave_at(count - lanes);
  for (; i < count; ++i) {
    for (std::size_t c = 0; c < 3; ++c) out[3 * i + c] = planes[c][i];
  }
}

}  // namespace
}  // namespace precast::data::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace precast::data {

HWY_EXPORT(layout_simd);
HWY_EXPORT(convolve_plane_columns_simd);
HWY_EXPORT(interleave_planes_simd);

PlaneLayout plane_layout() {
  return HWY_DYNAMIC_DISPATCH(layout_simd)();
}

void convolve_plane_columns(const std::int16_t* const* sums, const PlaneWeights& columns,
                            std::uint8_t* const* out) {
  HWY_DYNAMIC_DISPATCH(convolve_plane_columns_simd)(sums, columns, out);
}

void interleave_planes(const std::uint8_t* const* planes, std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(interleave_planes_simd)(planes, count, out);
}

namespace {

/// The range of values that contains one pair of taps of each of the outputs [begin, end).
struct Span {
  int first, size;
};
Span span_of(const std::vector<int>& start, std::size_t begin, std::size_t end) {
  const auto [low, high] = std::minmax(start[begin], start[end - 1]);
  return {low, high - low + 2};
}

}  // namespace

void PlaneWeights::plan(const WeightedAxis& axis) {
  layout = plane_layout();
  const std::size_t outputs = axis.start.size();
  const auto begin_of = [&](std::size_t window) { return std::min(window * used, outputs); };
  int widest = 0;
  for (used = layout.outputs;; used /= 2) {
    windows = (outputs + used - 1) / used;
    start.assign((windows + 1) / 2 * 2, 0);
    widest = 0;
    for (std::size_t w = 0; w < windows; ++w) {
      const Span span = span_of(axis.start, begin_of(w), begin_of(w + 1));
      start[w] = span.first;
      widest = std::max(widest, span.size);
    }
    if (used == 1 || static_cast<std::size_t>(widest) <= layout.values) break;
  }
  windows = start.size();
  narrow = static_cast<std::size_t>(widest) <= layout.values / 2;
  pairs = static_cast<std::size_t>(axis.taps + 1) / 2;
  indices.assign(windows * layout.outputs, 0);
  weights.assign(windows * pairs * layout.outputs, 0);
  std::vector<std::uint16_t> fixed(pairs * 2, 0);
  for (std::size_t output = 0; output < outputs; ++output) {
    axis.quantize(static_cast<int>(output), 1 << kColumnWeightBits, fixed.data());
    set_output(output, axis.start[output], fixed);
  }
}

void PlaneWeights::set_output(std::size_t output, int first,
                              const std::vector<std::uint16_t>& fixed) {
  const std::size_t window = output / used;
  const std::size_t lane = output % used;
  const auto offset = static_cast<std::uint32_t>(first - start[window]);
  indices[window * layout.outputs + lane] =
      layout.values == 8 ? 0x03020100U + 0x02020202U * offset : offset | (offset + 1) << 16;
  const std::size_t vector = window / layout.windows;
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    const std::size_t row = (vector * pairs + pair) * layout.windows + window % layout.windows;
    weights[row * layout.outputs + lane] = fixed[2 * pair] | std::uint32_t{fixed[2 * pair + 1]}
                                                                 << 16;
  }
}

std::size_t PlaneWeights::sums_row_values(int source) const {
  return static_cast<std::size_t>(source) + layout.values + 2;
}

}  // namespace precast::data
#endif  // HWY_ONCE
