#include "data/decode/block_kernels.h"

// Vectors in structs need a size that is known at compile time.
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

/// Sets `out` to the coefficients of the row's blocks from index `at` on. After the end of the row,
/// uses `none`; the samples computed from it are never read.
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
/// block: for each byte of the row, the index of its source byte in the eighth, or 0x80 if it comes
/// from another eighth.
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

/// Loads one eighth (128 bits) of each block.
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
HWY_INLINE void load_blocks(D d, std::int16_t* const (&blocks)[kBlocks],
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

#if HWY_TARGET <= HWY_AVX3

/// For each coefficient in natural order, its zigzag index. `upper_rows` is for rows 0 to 3 of the
/// block, `lower_rows` for rows 4 to 7.
struct ZigzagIndices {
  alignas(64) std::uint16_t upper_rows[32] = {};
  alignas(64) std::uint16_t lower_rows[32] = {};
  constexpr ZigzagIndices() {
    for (std::uint16_t k = 0; k < 64; ++k)
      (kZigzag[k] < 32 ? upper_rows : lower_rows)[kZigzag[k] % 32] = k;
  }
};
constexpr ZigzagIndices kZigzagIndices;

/// Turns four blocks with four rows each into four rows of four blocks.
HWY_INLINE void gather_rows(const __m512i (&blocks)[4], hn::Vec512<std::int16_t>* rows) {
  const __m512i a = _mm512_shuffle_i32x4(blocks[0], blocks[1], 0x44);
  const __m512i b = _mm512_shuffle_i32x4(blocks[0], blocks[1], 0xEE);
  const __m512i c = _mm512_shuffle_i32x4(blocks[2], blocks[3], 0x44);
  const __m512i d = _mm512_shuffle_i32x4(blocks[2], blocks[3], 0xEE);
  rows[0].raw = _mm512_shuffle_i32x4(a, c, 0x88);
  rows[1].raw = _mm512_shuffle_i32x4(a, c, 0xDD);
  rows[2].raw = _mm512_shuffle_i32x4(b, d, 0x88);
  rows[3].raw = _mm512_shuffle_i32x4(b, d, 0xDD);
}

/// Same as load_blocks(), but with permutations across a whole block.
template <class D>
HWY_INLINE void load_four_blocks(D /*d*/, std::int16_t* const (&blocks)[4],
                                 const BlockQuantizers& quantizers, Rows<D>& out) {
  const __m512i upper = _mm512_load_si512(kZigzagIndices.upper_rows);
  const __m512i lower = _mm512_load_si512(kZigzagIndices.lower_rows);
  const __m512i upper_factors = _mm512_load_si512(quantizers.values.data());
  const __m512i lower_factors = _mm512_load_si512(quantizers.values.data() + 32);
  __m512i upper_rows[4], lower_rows[4];
  for (std::size_t b = 0; b < 4; ++b) {
    const __m512i first = _mm512_load_si512(blocks[b]);
    const __m512i last = _mm512_load_si512(blocks[b] + 32);
    _mm512_store_si512(blocks[b], _mm512_setzero_si512());
    _mm512_store_si512(blocks[b] + 32, _mm512_setzero_si512());
    upper_rows[b] =
        _mm512_mullo_epi16(_mm512_permutex2var_epi16(first, upper, last), upper_factors);
    lower_rows[b] =
        _mm512_mullo_epi16(_mm512_permutex2var_epi16(first, lower, last), lower_factors);
  }
  gather_rows(upper_rows, out.v);
  gather_rows(lower_rows, out.v + 4);
}

/// Transposes four blocks, narrows them and stores their samples.
template <class D>
HWY_INLINE void store_four_blocks(const Rows<D>& rows, std::uint8_t* samples, std::size_t stride) {
  __m512i pairs[4];
  for (std::size_t i = 0; i < 4; ++i)
    pairs[i] = _mm512_packs_epi16(rows.v[2 * i].raw, rows.v[2 * i + 1].raw);
  const __m512i s0 = _mm512_unpacklo_epi8(pairs[0], pairs[2]);
  const __m512i s1 = _mm512_unpackhi_epi8(pairs[0], pairs[2]);
  const __m512i s2 = _mm512_unpacklo_epi8(pairs[1], pairs[3]);
  const __m512i s3 = _mm512_unpackhi_epi8(pairs[1], pairs[3]);
  const __m512i t0 = _mm512_unpacklo_epi8(s0, s2), t1 = _mm512_unpackhi_epi8(s0, s2);
  const __m512i t2 = _mm512_unpacklo_epi8(s1, s3), t3 = _mm512_unpackhi_epi8(s1, s3);
  const __m512i two_rows[4] = {_mm512_unpacklo_epi8(t0, t2), _mm512_unpackhi_epi8(t0, t2),
                               _mm512_unpacklo_epi8(t1, t3), _mm512_unpackhi_epi8(t1, t3)};
  const __m512i by_row = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  const __m512i flip_sign = _mm512_set1_epi8(static_cast<char>(0x80));
  for (const __m512i two : two_rows) {
    const __m512i both = _mm512_permutexvar_epi64(by_row, _mm512_xor_si512(two, flip_sign));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(samples), _mm512_castsi512_si256(both));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(samples + stride),
                        _mm512_extracti64x4_epi64(both, 1));
    samples += 2 * stride;
  }
}

void transform_ifast(const BlockRow& row) {
  using D = hn::CappedTag<std::int16_t, 32>;
  const D d;
  LaneBlock none;
  std::uint8_t* samples = row.samples;
  for (std::size_t at = 0; at < row.count; at += 4, samples += 32) {
    std::int16_t* blocks[4];
    find_blocks(row, at, none, blocks);
    Rows<D> rows;
    load_four_blocks(d, blocks, *row.quantizers, rows);
    ifast_columns(d, rows);
    transpose_blocks(d, rows);
    ifast_columns(d, rows);
    for (auto& of : rows.v) of = hn::ShiftRight<5>(of);
    store_four_blocks(rows, samples, row.stride);
  }
}

#else

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
    load_blocks(d, blocks, *row.quantizers, rows);
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

#endif

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
      load_blocks(d, blocks, *row.quantizers, rows);
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
