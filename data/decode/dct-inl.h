// The two inverse DCTs of JPEG, compiled for each SIMD target of the including source. They
// transform two blocks at a time and are inlined into the loop that reads the bits:
//
//   ifast_pair: bitwise identical to the SIMD version of libjpeg-turbo's JDCT_IFAST
//   islow_pair: bitwise identical to JDCT_ISLOW
//
// Both turn dequantised coefficients into level-shifted samples, [8 rows][2 blocks][8 columns]
// each.

#if defined(PRECAST_DATA_DECODE_DCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRECAST_DATA_DECODE_DCT_INL_H_
#undef PRECAST_DATA_DECODE_DCT_INL_H_
#else
#define PRECAST_DATA_DECODE_DCT_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace precast::data::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Eight vectors: the rows of adjacent blocks.
template <class D>
struct Rows {
  hn::Vec<D> v[8];
};

/// value * factor / 2^8, computed as in libjpeg-turbo's SIMD code: the value is shifted up first,
/// then the upper half of the product is taken.
template <class D>
HWY_INLINE hn::Vec<D> scaled(D d, hn::Vec<D> value, int factor) {
  return hn::MulHigh(hn::ShiftLeft<2>(value), hn::Set(d, static_cast<std::int16_t>(factor * 64)));
}

/// One pass of the fast DCT down the columns (Arai, Agui, Nakajima 1988; libjpeg's jidctfst.c). Its
/// factors (1.082, 1.414 ...) have 8 fractional bits.
template <class D>
HWY_INLINE void ifast_columns(D d, Rows<D>& rows) {
  constexpr int k1082 = 277, k1414 = 362, k1847 = 473, kMinus1613 = -(669 - 256);
  auto& v = rows.v;
  const auto even_sum = hn::Add(v[0], v[4]), even_difference = hn::Sub(v[0], v[4]);
  const auto pair_sum = hn::Add(v[2], v[6]);
  const auto rotated = hn::Sub(scaled(d, hn::Sub(v[2], v[6]), k1414), pair_sum);
  const auto e0 = hn::Add(even_sum, pair_sum), e3 = hn::Sub(even_sum, pair_sum);
  const auto e1 = hn::Add(even_difference, rotated), e2 = hn::Sub(even_difference, rotated);

  const auto z13 = hn::Add(v[5], v[3]), z10 = hn::Sub(v[5], v[3]);
  const auto z11 = hn::Add(v[1], v[7]), z12 = hn::Sub(v[1], v[7]);
  const auto o7 = hn::Add(z11, z13);
  const auto t11 = scaled(d, hn::Sub(z11, z13), k1414);
  const auto z5 = scaled(d, hn::Add(z10, z12), k1847);
  const auto t10 = hn::Sub(scaled(d, z12, k1082), z5);
  const auto t12 = hn::Add(hn::Sub(scaled(d, z10, kMinus1613), z10), z5);
  const auto o6 = hn::Sub(t12, o7);
  const auto o5 = hn::Sub(t11, o6);
  const auto o4 = hn::Add(t10, o5);

  v[0] = hn::Add(e0, o7);
  v[7] = hn::Sub(e0, o7);
  v[1] = hn::Add(e1, o6);
  v[6] = hn::Sub(e1, o6);
  v[2] = hn::Add(e2, o5);
  v[5] = hn::Sub(e2, o5);
  v[4] = hn::Add(e3, o4);
  v[3] = hn::Sub(e3, o4);
}

/// One pass of the accurate DCT down the columns (Loeffler, Ligtenberg, Moschytz 1989; libjpeg's
/// jidctint.c), with 13 fractional bits. Results are shifted right by kShift with rounding.
template <int kShift, class D>
HWY_INLINE void islow_columns(D d, Rows<D>& rows) {
  const auto times = [d](hn::Vec<D> value, int factor)
                         HWY_ATTR { return hn::Mul(value, hn::Set(d, factor)); };
  auto& v = rows.v;
  const auto even = times(hn::Add(v[2], v[6]), 4433);
  const auto t2 = hn::Sub(even, times(v[6], 15137)), t3 = hn::Add(even, times(v[2], 6270));
  const auto t0 = hn::ShiftLeft<13>(hn::Add(v[0], v[4]));
  const auto t1 = hn::ShiftLeft<13>(hn::Sub(v[0], v[4]));
  const auto e0 = hn::Add(t0, t3), e3 = hn::Sub(t0, t3);
  const auto e1 = hn::Add(t1, t2), e2 = hn::Sub(t1, t2);

  const auto z1 = times(hn::Add(v[7], v[1]), -7373), z2 = times(hn::Add(v[5], v[3]), -20995);
  const auto sum3 = hn::Add(v[7], v[3]), sum4 = hn::Add(v[5], v[1]);
  const auto z5 = times(hn::Add(sum3, sum4), 9633);
  const auto z3 = hn::Add(times(sum3, -16069), z5), z4 = hn::Add(times(sum4, -3196), z5);
  const auto o0 = hn::Add(times(v[7], 2446), hn::Add(z1, z3));
  const auto o1 = hn::Add(times(v[5], 16819), hn::Add(z2, z4));
  const auto o2 = hn::Add(times(v[3], 25172), hn::Add(z2, z3));
  const auto o3 = hn::Add(times(v[1], 12299), hn::Add(z1, z4));

  const auto rounding = hn::Set(d, 1 << (kShift - 1));
  const auto put = [&](int low, int high, hn::Vec<D> e, hn::Vec<D> o) HWY_ATTR {
    const auto rounded = hn::Add(e, rounding);
    v[low] = hn::ShiftRight<kShift>(hn::Add(rounded, o));
    v[high] = hn::ShiftRight<kShift>(hn::Sub(rounded, o));
  };
  put(0, 7, e0, o3);
  put(1, 6, e1, o2);
  put(2, 5, e2, o1);
  put(3, 4, e3, o0);
}

/// The samples of two blocks: [8 rows][2 blocks][8 columns].
struct PairSamples {
  std::uint8_t at[8][16];
};

/// Transforms two blocks. Transposes through memory instead of with shuffles, so it works with
/// vectors of any length.
template <class D, typename T, typename Pass1, typename Pass2>
HWY_INLINE void transform_pair(D d, const T* in, const Pass1& pass1, const Pass2& pass2,
                               PairSamples& out) {
  T turned[8][16];
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t x = 0; x < 16; x += lanes) {
    Rows<D> rows;
    for (std::size_t y = 0; y < 8; ++y) rows.v[y] = hn::LoadU(d, in + y * 16 + x);
    pass1(rows);
    alignas(64) T column[8][16];
    for (int y = 0; y < 8; ++y) hn::StoreU(rows.v[y], d, column[y]);
    for (std::size_t i = 0; i < lanes; ++i) {
      for (std::size_t y = 0; y < 8; ++y) turned[(x + i) % 8][(x + i) / 8 * 8 + y] = column[y][i];
    }
  }
  for (std::size_t x = 0; x < 16; x += lanes) {
    Rows<D> rows;
    for (int y = 0; y < 8; ++y) rows.v[y] = hn::LoadU(d, turned[y] + x);
    pass2(rows);
    alignas(64) T row[8][16];
    for (int y = 0; y < 8; ++y) hn::StoreU(rows.v[y], d, row[y]);
    for (std::size_t i = 0; i < lanes; ++i) {
      for (std::size_t y = 0; y < 8; ++y) {
        const T value = row[y][i] < -128 ? T{-128} : row[y][i] > 127 ? T{127} : row[y][i];
        out.at[(x + i) % 8][(x + i) / 8 * 8 + y] = static_cast<std::uint8_t>(value + 128);
      }
    }
  }
}

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void ifast_pair(const std::int16_t* in, PairSamples& out) {
  const hn::CappedTag<std::int16_t, 16> d;
  const auto pass1 = [&](auto& rows) HWY_ATTR { ifast_columns(d, rows); };
  const auto pass2 = [&](auto& rows) HWY_ATTR {
    ifast_columns(d, rows);
    for (auto& row : rows.v) row = hn::ShiftRight<5>(row);
  };
  transform_pair(d, in, pass1, pass2, out);
}
#else
/// Transposes each 8 x 8 block of 16-bit numbers. A vector contains one row (128 bits) of each of
/// the adjacent blocks.
template <class D>
HWY_INLINE void transpose_blocks(D d, Rows<D>& rows) {
  const hn::Repartition<std::int32_t, D> d32;
  const hn::Repartition<std::int64_t, D> d64;
  auto& v = rows.v;
  const auto as32 = [&](hn::Vec<D> x) HWY_ATTR { return hn::BitCast(d32, x); };
  const auto as64 = [&](auto x) HWY_ATTR { return hn::BitCast(d64, x); };
  const auto a0 = as32(hn::InterleaveLower(d, v[0], v[1]));
  const auto a1 = as32(hn::InterleaveUpper(d, v[0], v[1]));
  const auto a2 = as32(hn::InterleaveLower(d, v[2], v[3]));
  const auto a3 = as32(hn::InterleaveUpper(d, v[2], v[3]));
  const auto a4 = as32(hn::InterleaveLower(d, v[4], v[5]));
  const auto a5 = as32(hn::InterleaveUpper(d, v[4], v[5]));
  const auto a6 = as32(hn::InterleaveLower(d, v[6], v[7]));
  const auto a7 = as32(hn::InterleaveUpper(d, v[6], v[7]));
  const auto finish = [&](int at, auto upper_half, auto lower_half) HWY_ATTR {
    v[at] = hn::BitCast(d, hn::InterleaveLower(d64, upper_half, lower_half));
    v[at + 1] = hn::BitCast(d, hn::InterleaveUpper(d64, upper_half, lower_half));
  };
  finish(0, as64(hn::InterleaveLower(d32, a0, a2)), as64(hn::InterleaveLower(d32, a4, a6)));
  finish(2, as64(hn::InterleaveUpper(d32, a0, a2)), as64(hn::InterleaveUpper(d32, a4, a6)));
  finish(4, as64(hn::InterleaveLower(d32, a1, a3)), as64(hn::InterleaveLower(d32, a5, a7)));
  finish(6, as64(hn::InterleaveUpper(d32, a1, a3)), as64(hn::InterleaveUpper(d32, a5, a7)));
}

HWY_INLINE void ifast_pair(const std::int16_t* in, PairSamples& out) {
  const hn::CappedTag<std::int16_t, 16> d;
  const hn::Rebind<std::int8_t, decltype(d)> d8;
  const hn::Rebind<std::uint8_t, decltype(d)> d_u8;
  const auto flip_sign = hn::Set(d_u8, 0x80);
  for (std::size_t x = 0; x < 16; x += hn::Lanes(d)) {
    Rows<hn::CappedTag<std::int16_t, 16>> rows;
    for (std::size_t y = 0; y < 8; ++y) rows.v[y] = hn::LoadU(d, in + y * 16 + x);
    ifast_columns(d, rows);
    transpose_blocks(d, rows);
    ifast_columns(d, rows);
    for (auto& row : rows.v) row = hn::ShiftRight<5>(row);
    transpose_blocks(d, rows);
    for (int y = 0; y < 8; ++y) {
      const auto centred = hn::BitCast(d_u8, hn::DemoteTo(d8, rows.v[y]));
      hn::StoreU(hn::Xor(centred, flip_sign), d_u8, out.at[y] + x);
    }
  }
}
#endif

HWY_INLINE void islow_pair(const std::int16_t* in, PairSamples& out) {
  const hn::CappedTag<std::int32_t, 16> d;
  std::int32_t wide[128];
  for (int i = 0; i < 128; ++i) wide[i] = in[i];
  const auto pass1 = [&](auto& rows) HWY_ATTR { islow_columns<11>(d, rows); };
  const auto pass2 = [&](auto& rows) HWY_ATTR { islow_columns<18>(d, rows); };
  transform_pair(d, wide, pass1, pass2, out);
}

}  // namespace
}  // namespace precast::data::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled for each target
