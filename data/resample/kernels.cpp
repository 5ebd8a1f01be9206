#include "data/resample/kernels.h"

// AVX3_DL has the byte permutations that gather the two taps of a column.
#define HWY_WANT_AVX3_DL
// Vectors in structs need a size that is known at compile time.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/resample/kernels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace precast::data::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

void blend_rows_simd(const std::int16_t* HWY_RESTRICT upper, const std::int16_t* HWY_RESTRICT lower,
                     int first, int second, std::size_t count, std::uint8_t* HWY_RESTRICT out) {
  const hn::CappedTag<std::int16_t, kRowMultiple> d;
  const hn::Rebind<std::uint8_t, decltype(d)> d_u8;
  const std::size_t lanes = hn::Lanes(d);
  const auto w0 = hn::Set(d, static_cast<std::int16_t>(first));
  const auto w1 = hn::Set(d, static_cast<std::int16_t>(second));
  const auto half = hn::Set(d, 2);
  for (std::size_t i = 0; i < count; i += lanes) {
    const auto sum =
        hn::Add(hn::MulHigh(hn::LoadU(d, upper + i), w0), hn::MulHigh(hn::LoadU(d, lower + i), w1));
    hn::StoreU(hn::DemoteTo(d_u8, hn::ShiftRight<2>(hn::Add(sum, half))), d_u8, out + i);
  }
}

bool prefers_lines_simd() {
  return HWY_TARGET <= HWY_AVX3_DL && HWY_ARCH_X86;
}

void stream_lines_simd(const std::byte* HWY_RESTRICT in, std::size_t lines,
                       std::byte* HWY_RESTRICT out) {
  const hn::CappedTag<std::uint64_t, kCacheLine / sizeof(std::uint64_t)> d;
  const auto* from = reinterpret_cast<const std::uint64_t*>(in);
  auto* to = reinterpret_cast<std::uint64_t*>(out);
  const std::size_t count = lines * kCacheLine / sizeof(std::uint64_t);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d))
    hn::Stream(hn::LoadU(d, from + i), d, to + i);
}

std::int16_t convolve_value(const std::uint8_t* const* rows, const std::uint16_t* weights, int taps,
                            int start, std::size_t i) {
  int sum = start;
  for (int t = 0; t < taps; ++t) sum += weights[t] * rows[t][i] >> 8;
  return static_cast<std::int16_t>(sum);
}

#if HWY_TARGET == HWY_SCALAR

void blend_columns_simd(const std::uint8_t* row, const ColumnBlend& columns, std::int16_t* out) {
  for (const ColumnBlend::Group& group : columns.groups) {
    for (std::size_t v = 0; v < ColumnBlend::Group::kValues; ++v) {
      const std::size_t quarter = v / 8 + v / 4 % 2 * 2;
      const std::size_t entry = quarter * 4 + v % 4;
      const std::uint8_t* window = row + group.window[quarter];
      const std::uint32_t shuffle = group.shuffle[entry];
      const std::uint32_t weight = group.weight[entry];
      const std::uint32_t sum = (weight & 0xFFFFU) * window[shuffle & 0xFFU] +
                                (weight >> 16) * window[shuffle >> 16 & 0xFFU];
      *out++ = static_cast<std::int16_t>(sum >> 4);
    }
  }
}

void convolve_rows_simd(const std::uint8_t* const* rows, const std::uint16_t* weights, int taps,
                        int start, std::size_t count, std::int16_t* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = convolve_value(rows, weights, taps, start, i);
}

void convolve_columns_simd(const std::int16_t* sums, const ColumnWeights& columns,
                           std::uint8_t* out) {
  for (std::size_t p = 0; p < columns.groups * ColumnWeights::kGroup; ++p) {
    const ColumnWeights::Pair* pairs = columns.weights.data() + p / 8 * columns.pairs;
    for (std::size_t c = 0; c < 3; ++c) {
      std::int32_t sum = 1 << (kSumBits + kColumnWeightBits - 1);
      const std::int16_t* value = sums + columns.start[p] + c;
      for (std::size_t pair = 0; pair < columns.pairs; ++pair, value += 6) {
        const std::uint32_t weight = pairs[pair].weight[p % 4 * 8 + p / 4 % 2 * 4];
        sum += static_cast<std::int16_t>(weight & 0xFFFFU) * value[0] +
               static_cast<std::int16_t>(weight >> 16) * value[3];
      }
      out[3 * p + c] = static_cast<std::uint8_t>(sum >> (kSumBits + kColumnWeightBits));
    }
  }
}

#else

// Vectors of 256 bits (two blocks of 128) where the target has them, otherwise of one block. Wider
// vectors would gain nothing, because each block is loaded from a different address.
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
constexpr std::size_t kBlocks = 2;
#else
constexpr std::size_t kBlocks = 1;
#endif
using Bytes = hn::FixedTag<std::uint8_t, 16 * kBlocks>;
using Words = hn::Repartition<std::int16_t, Bytes>;
using Sums = hn::Repartition<std::int32_t, Bytes>;

/// Loads one block from each address, or only `first` if a vector has one block.
HWY_INLINE hn::Vec<Bytes> load_blocks(const void* first, [[maybe_unused]] const void* second) {
  const hn::FixedTag<std::uint8_t, 16> d_block;
  const auto lower = hn::LoadU(d_block, static_cast<const std::uint8_t*>(first));
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  return hn::Combine(Bytes(), hn::LoadU(d_block, static_cast<const std::uint8_t*>(second)), lower);
#else
  return lower;
#endif
}

HWY_INLINE hn::Vec<Bytes> load_table(const std::uint32_t* entries) {
  return hn::BitCast(Bytes(), hn::LoadU(hn::Repartition<std::uint32_t, Bytes>(), entries));
}

/// Adds the products of 16-bit words and weights, in pairs. RearrangeToOddPlusEven of the returned
/// vector and `odd` gives the sums.
HWY_INLINE hn::Vec<Sums> add_products(hn::Vec<Bytes> words, const std::uint32_t* weights,
                                      hn::Vec<Sums> even, hn::Vec<Sums>& odd) {
  return hn::ReorderWidenMulAccumulate(Sums(), hn::BitCast(Words(), words),
                                       hn::BitCast(Words(), load_table(weights)), even, odd);
}

template <bool kWide>
void blend_columns_of(const std::uint8_t* HWY_RESTRICT row, const ColumnBlend& columns,
                      std::int16_t* HWY_RESTRICT out) {
  for (const ColumnBlend::Group& group : columns.groups) {
    for (std::size_t block = 0; block < 2; block += kBlocks) {
      const auto blend = [&](hn::Vec<Bytes> pixels, std::size_t entry) {
        const auto pairs = hn::TableLookupBytesOr0(pixels, load_table(group.shuffle + entry));
        auto odd = hn::Zero(Sums());
        const auto even = add_products(pairs, group.weight + entry, hn::Zero(Sums()), odd);
        return hn::ShiftRight<4>(hn::RearrangeToOddPlusEven(even, odd));
      };
      const auto at = [&](std::size_t quarter) {
        return load_blocks(row + group.window[quarter], row + group.window[quarter + kBlocks - 1]);
      };
      const auto pixels = at(block);
      const auto low = blend(pixels, 4 * block);
      const auto high = blend(kWide ? pixels : at(2 + block), 8 + 4 * block);
      hn::StoreU(hn::ReorderDemote2To(Words(), low, high), Words(), out + 8 * block);
    }
    out += ColumnBlend::Group::kValues;
  }
}

#if HWY_TARGET <= HWY_AVX3_DL && HWY_ARCH_X86
void blend_lines(const std::uint8_t* HWY_RESTRICT row, const std::vector<ColumnBlend::Line>& lines,
                 std::int16_t* HWY_RESTRICT out) {
  const hn::FixedTag<std::int16_t, ColumnBlend::Line::kValues> d;
  const hn::RebindToUnsigned<decltype(d)> d_u16;
  const hn::Repartition<std::uint8_t, decltype(d)> d_u8;
  for (const ColumnBlend::Line& line : lines) {
    const auto window = hn::LoadU(d_u8, row + line.window);
    const auto indices = hn::Load(d_u8, line.indices);
    const hn::Vec<decltype(d_u16)> pixels{_mm512_permutexvar_epi8(indices.raw, window.raw)};
    const auto nearer = hn::BitCast(d, hn::ShiftRight<1>(hn::And(pixels, hn::Set(d_u16, 0xFF00))));
    const auto farther = hn::BitCast(d, hn::ShiftLeft<7>(hn::And(pixels, hn::Set(d_u16, 0x00FF))));
    const auto change = hn::MulHigh(hn::Sub(nearer, farther), hn::Load(d, line.fraction));
    hn::Store(hn::Add(nearer, change), d, out);
    out += ColumnBlend::Line::kValues;
  }
}
#endif

void blend_columns_simd(const std::uint8_t* row, const ColumnBlend& columns, std::int16_t* out) {
#if HWY_TARGET <= HWY_AVX3_DL && HWY_ARCH_X86
  if (!columns.lines.empty()) return blend_lines(row, columns.lines, out);
#endif
  if (columns.wide_windows) return blend_columns_of<true>(row, columns, out);
  blend_columns_of<false>(row, columns, out);
}

/// Pixels times 256, with each block's lower and upper half in a separate vector.
struct Widened {
  hn::Vec<hn::Repartition<std::uint16_t, Bytes>> lower, upper;
};
HWY_INLINE Widened widen(const std::uint8_t* pixels) {
  const hn::Repartition<std::uint16_t, Bytes> d_u16;
  const auto bytes = hn::LoadU(Bytes(), pixels);
  return {hn::BitCast(d_u16, hn::InterleaveLower(Bytes(), hn::Zero(Bytes()), bytes)),
          hn::BitCast(d_u16, hn::InterleaveUpper(Bytes(), hn::Zero(Bytes()), bytes))};
}

template <class V>
HWY_INLINE void store_in_order(V lower, V upper, std::int16_t* out) {
  const hn::Repartition<std::uint16_t, Bytes> d;
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  const auto first = hn::ConcatLowerLower(d, upper, lower);
  const auto second = hn::ConcatUpperUpper(d, upper, lower);
#else
  const auto first = lower;
  const auto second = upper;
#endif
  hn::StoreU(hn::BitCast(Words(), first), Words(), out);
  hn::StoreU(hn::BitCast(Words(), second), Words(), out + hn::Lanes(Words()));
}

/// Computes kVectors vectors of values at `at`, so that each weight is loaded only once for all of
/// them.
template <std::size_t kVectors>
HWY_INLINE void convolve_rows_at(const std::uint8_t* const* rows, const std::uint16_t* weights,
                                 int taps, int start, std::size_t at, std::int16_t* out) {
  const hn::Repartition<std::uint16_t, Bytes> d_u16;
  constexpr std::size_t kStep = 16 * kBlocks;
  hn::Vec<decltype(d_u16)> lower[kVectors], upper[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) {
    lower[v] = upper[v] = hn::Set(d_u16, static_cast<std::uint16_t>(start));
  }
  for (int t = 0; t < taps; ++t) {
    const auto weight = hn::Set(d_u16, weights[t]);
    for (std::size_t v = 0; v < kVectors; ++v) {
      const Widened pixels = widen(rows[t] + at + v * kStep);
      lower[v] = hn::Add(lower[v], hn::MulHigh(pixels.lower, weight));
      upper[v] = hn::Add(upper[v], hn::MulHigh(pixels.upper, weight));
    }
  }
  for (std::size_t v = 0; v < kVectors; ++v) {
    store_in_order(lower[v], upper[v], out + at + v * kStep);
  }
}

void convolve_rows_simd(const std::uint8_t* const* HWY_RESTRICT rows,
                        const std::uint16_t* HWY_RESTRICT weights, int taps, int start,
                        std::size_t count, std::int16_t* HWY_RESTRICT out) {
  constexpr std::size_t kStep = 16 * kBlocks;
  std::size_t i = 0;
  for (; i + 2 * kStep <= count; i += 2 * kStep) {
    convolve_rows_at<2>(rows, weights, taps, start, i, out);
  }
  for (; i + kStep <= count; i += kStep) convolve_rows_at<1>(rows, weights, taps, start, i, out);
  if (i == count) return;
  if (count >= kStep) return convolve_rows_at<1>(rows, weights, taps, start, count - kStep, out);
  for (; i < count; ++i) out[i] = convolve_value(rows, weights, taps, start, i);
}

void convolve_columns_simd(const std::int16_t* HWY_RESTRICT sums, const ColumnWeights& columns,
                           std::uint8_t* HWY_RESTRICT out) {
  constexpr std::uint8_t kNone = 0x80;
  // Puts each of a pixel's three channels next to the same channel of the following pixel.
  alignas(16) static constexpr std::uint8_t kPairs[16] = {0, 1, 6,  7,  2,     3,     8,     9,
                                                          4, 5, 10, 11, kNone, kNone, kNone, kNone};
  // Selects the low bytes of the three channels of two pixels, which have four words each.
  alignas(16) static constexpr std::uint8_t kFirst[16] = {
      0, 2, 4, 8, 10, 12, kNone, kNone, kNone, kNone, kNone, kNone, kNone, kNone, kNone, kNone};
  alignas(16) static constexpr std::uint8_t kSecond[16] = {
      kNone, kNone, kNone, kNone, kNone, kNone, 0, 2, 4, 8, 10, 12, kNone, kNone, kNone, kNone};
  const auto pair_up = load_blocks(kPairs, kPairs);
  const auto first = load_blocks(kFirst, kFirst);
  const auto second = load_blocks(kSecond, kSecond);
  constexpr int kBits = kSumBits + kColumnWeightBits;
  const std::int32_t* HWY_RESTRICT start = columns.start.data();
  const ColumnWeights::Pair* HWY_RESTRICT pairs = columns.weights.data();
  for (std::size_t group = 0; group < columns.groups; ++group) {
    for (std::size_t block = 0; block < 2; block += kBlocks) {
      hn::Vec<Sums> pixel[4];
      for (std::size_t p = 0; p < 4; ++p) {
        const std::int16_t* from = sums + start[p + 4 * block];
        const std::int16_t* from_other = sums + start[p + 4 * (block + kBlocks - 1)];
        auto even = hn::Set(Sums(), 1 << (kBits - 1));
        auto odd = hn::Zero(Sums());
        for (std::size_t pair = 0; pair < columns.pairs; ++pair) {
          const auto values =
              hn::TableLookupBytesOr0(load_blocks(from + 6 * pair, from_other + 6 * pair), pair_up);
          even = add_products(values, pairs[pair].weight + 8 * p + 4 * block, even, odd);
        }
        pixel[p] = hn::ShiftRight<kBits>(hn::RearrangeToOddPlusEven(even, odd));
      }
      const auto words01 = hn::ReorderDemote2To(Words(), pixel[0], pixel[1]);
      const auto words23 = hn::ReorderDemote2To(Words(), pixel[2], pixel[3]);
      const auto bytes = hn::Or(hn::TableLookupBytesOr0(hn::BitCast(Bytes(), words01), first),
                                hn::TableLookupBytesOr0(hn::BitCast(Bytes(), words23), second));
      // 12 bytes of each block are results; the stores that follow overwrite the others.
      const hn::FixedTag<std::uint8_t, 16> d_block;
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
      hn::StoreU(hn::LowerHalf(d_block, bytes), d_block, out);
      hn::StoreU(hn::UpperHalf(d_block, bytes), d_block, out + 12);
#else
      hn::StoreU(bytes, d_block, out + 12 * block);
#endif
    }
    start += 8;
    pairs += columns.pairs;
    out += 24;
  }
}

#endif

}  // namespace
}  // namespace precast::data::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace precast::data {

HWY_EXPORT(blend_columns_simd);
HWY_EXPORT(blend_rows_simd);
HWY_EXPORT(prefers_lines_simd);
HWY_EXPORT(stream_lines_simd);
HWY_EXPORT(convolve_rows_simd);
HWY_EXPORT(convolve_columns_simd);

bool prefers_lines() {
  return HWY_DYNAMIC_DISPATCH(prefers_lines_simd)();
}

void blend_columns(const std::uint8_t* row, const ColumnBlend& columns, std::int16_t* out) {
  HWY_DYNAMIC_DISPATCH(blend_columns_simd)(row, columns, out);
}

void blend_rows(const std::int16_t* upper, const std::int16_t* lower, int first, int second,
                std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(blend_rows_simd)(upper, lower, first, second, count, out);
}

void stream_lines(const std::byte* in, std::size_t lines, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(stream_lines_simd)(in, lines, out);
}

void convolve_rows(const std::uint8_t* const* rows, const std::uint16_t* weights, int taps,
                   int start, std::size_t count, std::int16_t* out) {
  HWY_DYNAMIC_DISPATCH(convolve_rows_simd)(rows, weights, taps, start, count, out);
}

void convolve_columns(const std::int16_t* sums, const ColumnWeights& columns, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(convolve_columns_simd)(sums, columns, out);
}

}  // namespace precast::data
#endif  // HWY_ONCE
