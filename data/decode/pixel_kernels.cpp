#include "data/decode/pixel_kernels.h"

// This target has byte permutations, which are used to interleave colours.
#define HWY_WANT_AVX3_DL
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/decode/pixel_kernels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace precast::data::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

std::size_t copy_until_ff_simd(const std::uint8_t* HWY_RESTRICT in, std::size_t count,
                               std::uint8_t* HWY_RESTRICT out) {
  const hn::CappedTag<std::uint8_t, 32> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto ff = hn::Set(d, 0xFF);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto bytes = hn::LoadU(d, in + i);
    hn::StoreU(bytes, d, out + i);
    const auto first = hn::FindFirstTrue(d, hn::Eq(bytes, ff));
    if (first >= 0) return i + static_cast<std::size_t>(first);
  }
  for (; i < count && in[i] != 0xFF; ++i) out[i] = in[i];
  return i;
}

void blend_rows_simd(const std::uint8_t* HWY_RESTRICT near, const std::uint8_t* HWY_RESTRICT far,
                     std::size_t count, std::uint16_t* HWY_RESTRICT out) {
  const hn::ScalableTag<std::uint16_t> d;
  const hn::Rebind<std::uint8_t, decltype(d)> d_u8;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto n = hn::PromoteTo(d, hn::LoadU(d_u8, near + i));
    const auto f = hn::PromoteTo(d, hn::LoadU(d_u8, far + i));
    hn::StoreU(hn::Add(hn::Add(hn::Add(n, n), n), f), d, out + i);
  }
}

/// Stores the samples of two vectors alternately. Each sample is below 256.
template <class D>
void store_pairs(hn::Vec<D> even, hn::Vec<D> odd, D d, std::uint8_t* out) {
#if HWY_TARGET == HWY_SCALAR
  static_cast<void>(d);
  out[0] = static_cast<std::uint8_t>(hn::GetLane(even));
  out[1] = static_cast<std::uint8_t>(hn::GetLane(odd));
#else
  const auto pairs = hn::Or(even, hn::ShiftLeft<8>(odd));
  const hn::Repartition<std::uint8_t, D> d_u8;
  hn::StoreU(hn::BitCast(d_u8, pairs), d_u8, out);
#endif
}

void upsample_h2v2_simd(const std::uint16_t* HWY_RESTRICT in, std::size_t count,
                        std::uint8_t* HWY_RESTRICT out) {
  const hn::ScalableTag<std::uint16_t> d;
  const auto eight = hn::Set(d, 8), seven = hn::Set(d, 7);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto here = hn::LoadU(d, in + i);
    const auto thrice = hn::Add(hn::Add(here, here), here);
    const auto left = hn::Add(hn::LoadU(d, in + i - 1), eight);
    const auto right = hn::Add(hn::LoadU(d, in + i + 1), seven);
    store_pairs(hn::ShiftRight<4>(hn::Add(thrice, left)), hn::ShiftRight<4>(hn::Add(thrice, right)),
                d, out + 2 * i);
  }
}

void upsample_h2v1_simd(const std::uint8_t* HWY_RESTRICT in, std::size_t count,
                        std::uint8_t* HWY_RESTRICT out) {
  const hn::ScalableTag<std::uint16_t> d;
  const hn::Rebind<std::uint8_t, decltype(d)> d_u8;
  const auto one = hn::Set(d, 1), two = hn::Set(d, 2);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto here = hn::PromoteTo(d, hn::LoadU(d_u8, in + i));
    const auto thrice = hn::Add(hn::Add(here, here), here);
    const auto left = hn::Add(hn::PromoteTo(d, hn::LoadU(d_u8, in + i - 1)), one);
    const auto right = hn::Add(hn::PromoteTo(d, hn::LoadU(d_u8, in + i + 1)), two);
    store_pairs(hn::ShiftRight<2>(hn::Add(thrice, left)), hn::ShiftRight<2>(hn::Add(thrice, right)),
                d, out + 2 * i);
  }
}

constexpr std::int16_t kRedFromCr = 13173;     // 0.40200 (1.40200 = 1 + 0.40200)
constexpr std::int16_t kBlueFromCb = -7471;    // -0.22800 (1.77200 = 2 - 0.22800)
constexpr std::int16_t kGreenFromCb = -22554;  // -0.34414
constexpr std::int16_t kGreenFromCr = 18734;   // 0.28586 (-0.71414 = 0.28586 - 1)

/// (kGreenFromCb * cb + kGreenFromCr * cr + 32768) >> 16
template <class D>
HWY_INLINE hn::Vec<D> green_fraction(D d, hn::Vec<D> cb, hn::Vec<D> cr) {
#if HWY_TARGET == HWY_SCALAR
  const int sum = kGreenFromCb * hn::GetLane(cb) + kGreenFromCr * hn::GetLane(cr);
  return hn::Set(d, static_cast<std::int16_t>((sum + 32768) >> 16));
#else
  const hn::Repartition<std::int32_t, D> d32;
  const auto both = static_cast<std::uint32_t>(static_cast<std::uint16_t>(kGreenFromCb)) |
                    static_cast<std::uint32_t>(kGreenFromCr) << 16;
  const auto factors = hn::BitCast(d, hn::Set(d32, static_cast<std::int32_t>(both)));
  const auto half = hn::Set(d32, 32768);
  const auto weigh = [&](hn::Vec<D> pairs) HWY_ATTR {
    auto other = hn::Zero(d32);
    const auto sum = hn::ReorderWidenMulAccumulate(d32, pairs, factors, hn::Zero(d32), other);
    return hn::ShiftRight<16>(hn::Add(hn::RearrangeToOddPlusEven(sum, other), half));
  };
  return hn::ReorderDemote2To(d, weigh(hn::InterleaveLower(d, cb, cr)),
                              weigh(hn::InterleaveUpper(d, cb, cr)));
#endif
}

template <class D>
struct Rgb {
  hn::Vec<D> r, g, b;
};

/// Converts one vector of pixels. The results are not yet limited to 0-255.
template <class D>
HWY_INLINE Rgb<D> convert(D d, const std::uint8_t* y, const std::uint8_t* cb,
                          const std::uint8_t* cr) {
  const hn::Rebind<std::uint8_t, D> d_u8;
  const auto centre = hn::Set(d, 128);
  const auto luma = hn::PromoteTo(d, hn::LoadU(d_u8, y));
  const auto blue = hn::Sub(hn::PromoteTo(d, hn::LoadU(d_u8, cb)), centre);
  const auto red = hn::Sub(hn::PromoteTo(d, hn::LoadU(d_u8, cr)), centre);
  const auto red_fraction = hn::MulFixedPoint15(red, hn::Set(d, kRedFromCr));
  const auto blue_fraction = hn::MulFixedPoint15(blue, hn::Set(d, kBlueFromCb));
  return {hn::Add(luma, hn::Add(red, red_fraction)),
          hn::Add(luma, hn::Sub(green_fraction(d, blue, red), red)),
          hn::Add(luma, hn::Add(hn::Add(blue, blue), blue_fraction))};
}

#if HWY_TARGET == HWY_AVX3_DL

/// For each byte of 64 interleaved pixels, its index in a vector of one colour. Such a vector
/// contains, alternately, 8 of the first 32 and 8 of the last 32 pixels.
struct InterleavedBytes {
  /// For a red byte, its index in the red vector; for a green byte, its index in the green vector
  /// plus 64: the instruction treats the two vectors as one table of 128 bytes.
  alignas(64) std::uint8_t red_green[3][64] = {};
  /// Indices in the blue vector; used only for the bytes whose bit in `is_blue` is set.
  alignas(64) std::uint8_t blue[3][64] = {};
  std::uint64_t is_blue[3] = {};
  constexpr InterleavedBytes() {
    for (std::size_t i = 0; i < 192; ++i) {
      const std::size_t pixel = i / 3, colour = i % 3, part = i / 64;
      const std::size_t at = pixel % 32 / 8 * 16 + pixel / 32 * 8 + pixel % 8;
      red_green[part][i % 64] = static_cast<std::uint8_t>(colour == 1 ? at + 64 : at);
      blue[part][i % 64] = static_cast<std::uint8_t>(at);
      if (colour == 2) is_blue[part] |= std::uint64_t{1} << (i % 64);
    }
  }
};
constexpr InterleavedBytes kInterleaved;

/// Calls store(index, r, g, b) for every 64 pixels.
template <class Store>
HWY_INLINE void convert_row(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr,
                            std::size_t count, const Store& store) {
  const hn::ScalableTag<std::int16_t> d;
  for (std::size_t i = 0; i < count; i += 64) {
    const auto first = convert(d, y + i, cb + i, cr + i);
    const auto last = convert(d, y + i + 32, cb + i + 32, cr + i + 32);
    store(i, _mm512_packus_epi16(first.r.raw, last.r.raw),
          _mm512_packus_epi16(first.g.raw, last.g.raw),
          _mm512_packus_epi16(first.b.raw, last.b.raw));
  }
}

void ycc_to_rgb_simd(const std::uint8_t* HWY_RESTRICT y, const std::uint8_t* HWY_RESTRICT cb,
                     const std::uint8_t* HWY_RESTRICT cr, std::size_t count,
                     std::uint8_t* HWY_RESTRICT out) {
  convert_row(y, cb, cr, count, [out](std::size_t i, __m512i r, __m512i g, __m512i b) HWY_ATTR {
    for (std::size_t part = 0; part < 3; ++part) {
      const __m512i red_green = _mm512_load_si512(kInterleaved.red_green[part]);
      const __m512i blue = _mm512_load_si512(kInterleaved.blue[part]);
      const __m512i two = _mm512_permutex2var_epi8(r, red_green, g);
      _mm512_storeu_si512(out + 3 * i + 64 * part,
                          _mm512_mask_permutexvar_epi8(two, kInterleaved.is_blue[part], blue, b));
    }
  });
}

void ycc_to_planes_simd(const std::uint8_t* HWY_RESTRICT y, const std::uint8_t* HWY_RESTRICT cb,
                        const std::uint8_t* HWY_RESTRICT cr, std::size_t count,
                        const RgbRows& out) {
  const __m512i in_order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  convert_row(y, cb, cr, count, [&](std::size_t i, __m512i r, __m512i g, __m512i b) HWY_ATTR {
    _mm512_storeu_si512(out.r + i, _mm512_permutexvar_epi64(in_order, r));
    _mm512_storeu_si512(out.g + i, _mm512_permutexvar_epi64(in_order, g));
    _mm512_storeu_si512(out.b + i, _mm512_permutexvar_epi64(in_order, b));
  });
}

#else

void ycc_to_rgb_simd(const std::uint8_t* HWY_RESTRICT y, const std::uint8_t* HWY_RESTRICT cb,
                     const std::uint8_t* HWY_RESTRICT cr, std::size_t count,
                     std::uint8_t* HWY_RESTRICT out) {
  const hn::ScalableTag<std::int16_t> d;
  const hn::Rebind<std::uint8_t, decltype(d)> d_u8;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto rgb = convert(d, y + i, cb + i, cr + i);
    hn::StoreInterleaved3(hn::DemoteTo(d_u8, rgb.r), hn::DemoteTo(d_u8, rgb.g),
                          hn::DemoteTo(d_u8, rgb.b), d_u8, out + 3 * i);
  }
}

void ycc_to_planes_simd(const std::uint8_t* HWY_RESTRICT y, const std::uint8_t* HWY_RESTRICT cb,
                        const std::uint8_t* HWY_RESTRICT cr, std::size_t count,
                        const RgbRows& out) {
  const hn::ScalableTag<std::int16_t> d;
  const hn::Rebind<std::uint8_t, decltype(d)> d_u8;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto rgb = convert(d, y + i, cb + i, cr + i);
    hn::StoreU(hn::DemoteTo(d_u8, rgb.r), d_u8, out.r + i);
    hn::StoreU(hn::DemoteTo(d_u8, rgb.g), d_u8, out.g + i);
    hn::StoreU(hn::DemoteTo(d_u8, rgb.b), d_u8, out.b + i);
  }
}

#endif

void grey_to_rgb_simd(const std::uint8_t* HWY_RESTRICT y, std::size_t count,
                      std::uint8_t* HWY_RESTRICT out) {
  const hn::CappedTag<std::uint8_t, 16> d;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto grey = hn::LoadU(d, y + i);
    hn::StoreInterleaved3(grey, grey, grey, d, out + 3 * i);
  }
}

}  // namespace
}  // namespace precast::data::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace precast::data {

HWY_EXPORT(copy_until_ff_simd);
HWY_EXPORT(blend_rows_simd);
HWY_EXPORT(upsample_h2v2_simd);
HWY_EXPORT(upsample_h2v1_simd);
HWY_EXPORT(ycc_to_rgb_simd);
HWY_EXPORT(ycc_to_planes_simd);
HWY_EXPORT(grey_to_rgb_simd);

std::size_t copy_until_ff(const std::uint8_t* in, std::size_t count, std::uint8_t* out) {
  return HWY_DYNAMIC_DISPATCH(copy_until_ff_simd)(in, count, out);
}

void blend_rows(const std::uint8_t* near, const std::uint8_t* far, std::size_t count,
                std::uint16_t* out) {
  HWY_DYNAMIC_DISPATCH(blend_rows_simd)(near, far, count, out);
}

void upsample_h2v2(const std::uint16_t* in, std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(upsample_h2v2_simd)(in, count, out);
}

void upsample_h2v1(const std::uint8_t* in, std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(upsample_h2v1_simd)(in, count, out);
}

void ycc_to_rgb(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr,
                std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(ycc_to_rgb_simd)(y, cb, cr, count, out);
}

void ycc_to_planes(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr,
                   std::size_t count, const RgbRows& out) {
  HWY_DYNAMIC_DISPATCH(ycc_to_planes_simd)(y, cb, cr, count, out);
}

void grey_to_rgb(const std::uint8_t* y, std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(grey_to_rgb_simd)(y, count, out);
}

}  // namespace precast::data
#endif  // HWY_ONCE
