#include "data/decode/block_kernels.h"

// Structs of vectors need vectors of known size.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/decode/block_kernels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <cstring>
#include <utility>

#include "data/decode/dct-inl.h"

HWY_BEFORE_NAMESPACE();
namespace precast::data::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// The row's blocks from index `at` on; beyond its end, a block that is never read.
template <std::size_t kBlocks>
HWY_INLINE void find_blocks(const BlockRow& row, std::size_t at, LaneBlock& none,
                            std::int16_t* (&out)[kBlocks]) {
  const std::size_t shift = row.columns - 1;
  for (std::size_t b = 0; b < kBlocks; ++b) {
    const std::size_t i = at + b;
    LaneBlock& block =
        i < row.count ? row.first[(i >> shift) * row.mcu_blocks + (i & shift)] : none;
    out[b] = block.coefficients;
  }
}

#if HWY_TARGET == HWY_SCALAR

void transform_simd(const BlockRow& row, JpegDct dct) {
  LaneBlock none;
  for (std::size_t at = 0; at < row.count; at += 2) {
    std::int16_t* blocks[2];
    find_blocks(row, at, none, blocks);
    std::int16_t values[128];
    for (std::size_t b = 0; b < 2; ++b) {
      for (std::size_t k = 0; k < 64; ++k) {
        const std::size_t natural = kZigzag[k];
        values[natural / 8 * 16 + b * 8 + natural % 8] =
            static_cast<std::int16_t>(blocks[b][k] * row.quantizers->values[natural]);
      }
      std::memset(blocks[b], 0, 64 * sizeof(std::int16_t));
    }
    PairSamples samples;
    if (dct == JpegDct::ifast) {
      ifast_pair(values, samples);
    } else {
      islow_pair(values, samples);
    }
    for (std::size_t y = 0; y < 8; ++y)
      std::memcpy(row.samples + y * row.stride + 8 * at, samples.at[y], 16);
  }
}

#else

/// Shuffle indices that move the coefficients of one eighth of the zigzag order to row `row` of the
/// block: for each byte of the row, the byte of the eighth that goes there. 0x80: none.
struct ZigzagBytes {
  alignas(16) std::uint8_t from[16] = {};
  bool any = false;
};

constexpr ZigzagBytes zigzag_bytes(std::size_t row, std::size_t eighth) {
  ZigzagBytes bytes;
  for (std::uint8_t& byte : bytes.from) byte = 0x80;
  for (std::size_t k = 8 * eighth; k < 8 * eighth + 8; ++k) {
    if (kZigzag[k] / 8 != row) continue;
    const std::size_t column = kZigzag[k] % 8;
    bytes.from[2 * column] = static_cast<std::uint8_t>(2 * (k % 8));
    bytes.from[2 * column + 1] = static_cast<std::uint8_t>(2 * (k % 8) + 1);
    bytes.any = true;
  }
  return bytes;
}

template <std::size_t kRow, std::size_t kEighth>
constexpr ZigzagBytes kZigzagBytes = zigzag_bytes(kRow, kEighth);

/// 128 bits of each block.
template <class D, std::size_t kBlocks>
HWY_INLINE hn::Vec<D> load_eighths(D d, std::int16_t* const (&blocks)[kBlocks],
                                   std::size_t eighth) {
  if constexpr (kBlocks == 1) {
    return hn::LoadU(d, blocks[0] + 8 * eighth);
  } else {
    const hn::Half<D> dh;
    std::int16_t* lower[kBlocks / 2];
    std::int16_t* upper[kBlocks / 2];
    for (std::size_t b = 0; b < kBlocks / 2; ++b) {
      lower[b] = blocks[b];
      upper[b] = blocks[kBlocks / 2 + b];
    }
    return hn::Combine(d, load_eighths(dh, upper, eighth), load_eighths(dh, lower, eighth));
  }
}

template <std::size_t kRow, class D, std::size_t... kEighth>
HWY_INLINE hn::Vec<D> natural_row(D d, const Rows<D>& eighths,
                                  std::index_sequence<kEighth...> /*unused*/) {
  const hn::Repartition<std::uint8_t, D> d_u8;
  auto row = hn::Zero(d_u8);
  const auto add =
      [&]<std::size_t kFrom>(std::integral_constant<std::size_t, kFrom> /*unused*/) HWY_ATTR {
        if constexpr (kZigzagBytes<kRow, kFrom>.any) {
          const auto table = hn::LoadDup128(d_u8, kZigzagBytes<kRow, kFrom>.from);
          row = hn::Or(row, hn::TableLookupBytesOr0(hn::BitCast(d_u8, eighths.v[kFrom]), table));
        }
      };
  (add(std::integral_constant<std::size_t, kEighth>()), ...);
  return hn::BitCast(d, row);
}

template <class D, std::size_t... kRow>
HWY_INLINE void to_natural_order(D d, const Rows<D>& eighths, Rows<D>& out,
                                 std::index_sequence<kRow...> rows) {
  ((out.v[kRow] = natural_row<kRow>(d, eighths, rows)), ...);
}

/// Loads, orders and dequantises blocks, in 16 bits as libjpeg-turbo does, and clears them.
template <class D, std::size_t kBlocks>
HWY_INLINE void take_blocks(D d, std::int16_t* const (&blocks)[kBlocks],
                            const BlockQuantizers& quantizers, Rows<D>& out) {
  Rows<D> eighths;
  for (std::size_t i = 0; i < 8; ++i) eighths.v[i] = load_eighths(d, blocks, i);
  to_natural_order(d, eighths, out, std::make_index_sequence<8>());
  for (std::size_t y = 0; y < 8; ++y)
    out.v[y] = hn::Mul(out.v[y], hn::LoadDup128(d, quantizers.values.data() + 8 * y));
  for (std::int16_t* const block : blocks) {
    const hn::CappedTag<std::int16_t, 32> d_clear;
    for (std::size_t i = 0; i < 64; i += hn::Lanes(d_clear))
      hn::StoreU(hn::Zero(d_clear), d_clear, block + i);
  }
}

void transform_ifast(const BlockRow& row) {
  using D = hn::CappedTag<std::int16_t, 32>;
  const D d;
  constexpr std::size_t kBlocks = hn::MaxLanes(D()) / 8;
  const hn::Rebind<std::int8_t, D> d8;
  const hn::Rebind<std::uint8_t, D> d_u8;
  const auto flip_sign = hn::Set(d_u8, 0x80);
  LaneBlock none;
  std::uint8_t* samples = row.samples;
  for (std::size_t at = 0; at < row.count; at += kBlocks, samples += 8 * kBlocks) {
    std::int16_t* blocks[kBlocks];
    find_blocks(row, at, none, blocks);
    Rows<D> rows;
    take_blocks(d, blocks, *row.quantizers, rows);
    ifast_columns(d, rows);
    transpose_blocks(d, rows);
    ifast_columns(d, rows);
    for (auto& of : rows.v) of = hn::ShiftRight<5>(of);
    transpose_blocks(d, rows);
    for (std::size_t y = 0; y < 8; ++y) {
      const auto centred = hn::BitCast(d_u8, hn::DemoteTo(d8, rows.v[y]));
      hn::StoreU(hn::Xor(centred, flip_sign), d_u8, samples + y * row.stride);
    }
  }
}

void transform_islow(const BlockRow& row) {
  using D = hn::CappedTag<std::int16_t, 16>;
  const D d;
  constexpr std::size_t kBlocks = hn::MaxLanes(D()) / 8;
  LaneBlock none;
  for (std::size_t at = 0; at < row.count; at += 2) {
    std::int16_t values[128];
    for (std::size_t b = 0; b < 2; b += kBlocks) {
      std::int16_t* blocks[kBlocks];
      find_blocks(row, at + b, none, blocks);
      Rows<D> rows;
      take_blocks(d, blocks, *row.quantizers, rows);
      for (std::size_t y = 0; y < 8; ++y) hn::StoreU(rows.v[y], d, values + 16 * y + 8 * b);
    }
    PairSamples samples;
    islow_pair(values, samples);
    for (std::size_t y = 0; y < 8; ++y)
      std::memcpy(row.samples + y * row.stride + 8 * at, samples.at[y], 16);
  }
}

void transform_simd(const BlockRow& row, JpegDct dct) {
  if (dct == JpegDct::ifast) return transform_ifast(row);
  transform_islow(row);
}

#endif

}  // namespace
}  // namespace precast::data::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace precast::data {

HWY_EXPORT(transform_simd);

void transform_blocks(const BlockRow& row, JpegDct dct) {
  HWY_DYNAMIC_DISPATCH(transform_simd)(row, dct);
}

}  // namespace precast::data
#endif  // HWY_ONCE
