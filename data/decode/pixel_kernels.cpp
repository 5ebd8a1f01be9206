#include "data/decode/pixel_kernels.h"

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

/// Interleaves two vectors of samples, each below 256, in memory.
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

void widen_blended_simd(const std::uint16_t* HWY_RESTRICT in, std::size_t count,
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

void widen_simd(const std::uint8_t* HWY_RESTRICT in, std::size_t count,
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

/// factor * chroma / 65536, rounded half up; |chroma| <= 128 and the factor is a 16-bit fraction.
template <class V, class D>
V fraction_of(V chroma, std::int16_t factor, D d) {
  // The upper half of the doubled product keeps the bit that decides the rounding.
  const auto doubled = hn::MulHigh(hn::Add(chroma, chroma), hn::Set(d, factor));
  return hn::ShiftRight<1>(hn::Add(doubled, hn::Set(d, 1)));
}

/// (a * cb + b * cr + 32768) >> 16 in 16-bit lanes; a and b are even, so that nothing is lost where
/// the lower halves of the products are added at half their size.
template <class V, class D>
V green_fraction(V cb, V cr, std::int16_t a, std::int16_t b, D d) {
  const hn::RebindToUnsigned<D> d_u16;
  const auto factor_a = hn::Set(d, a), factor_b = hn::Set(d, b);
  const auto high = hn::Add(hn::MulHigh(cb, factor_a), hn::MulHigh(cr, factor_b));
  const auto low_a = hn::ShiftRight<1>(hn::BitCast(d_u16, hn::Mul(cb, factor_a)));
  const auto low_b = hn::ShiftRight<1>(hn::BitCast(d_u16, hn::Mul(cr, factor_b)));
  const auto quarters = hn::ShiftRight<14>(hn::Add(low_a, low_b));
  const auto carry = hn::ShiftRight<1>(hn::Add(quarters, hn::Set(d_u16, 1)));
  return hn::Add(high, hn::BitCast(d, carry));
}

constexpr std::int16_t kRedFromCr = 26345;     // 0.40200 (the rest of 1.40200 is added whole)
constexpr std::int16_t kBlueFromCb = -14942;   // -0.22800 (1.77200 = 2 - 0.22800)
constexpr std::int16_t kGreenFromCb = -22554;  // -0.34414
constexpr std::int16_t kGreenFromCr = 18734;   // 0.28586 (-0.71414 = 0.28586 - 1)

void ycc_to_rgb_simd(const std::uint8_t* HWY_RESTRICT y, const std::uint8_t* HWY_RESTRICT cb,
                     const std::uint8_t* HWY_RESTRICT cr, std::size_t count,
                     std::uint8_t* HWY_RESTRICT out) {
  const hn::ScalableTag<std::int16_t> d;
  const hn::Rebind<std::uint8_t, decltype(d)> d_u8;
  const auto centre = hn::Set(d, 128);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto luma = hn::PromoteTo(d, hn::LoadU(d_u8, y + i));
    const auto blue = hn::Sub(hn::PromoteTo(d, hn::LoadU(d_u8, cb + i)), centre);
    const auto red = hn::Sub(hn::PromoteTo(d, hn::LoadU(d_u8, cr + i)), centre);
    const auto r = hn::Add(luma, hn::Add(red, fraction_of(red, kRedFromCr, d)));
    const auto g =
        hn::Add(luma, hn::Sub(green_fraction(blue, red, kGreenFromCb, kGreenFromCr, d), red));
    const auto b = hn::Add(luma, hn::Add(hn::Add(blue, blue), fraction_of(blue, kBlueFromCb, d)));
    hn::StoreInterleaved3(hn::DemoteTo(d_u8, r), hn::DemoteTo(d_u8, g), hn::DemoteTo(d_u8, b), d_u8,
                          out + 3 * i);
  }
}

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
HWY_EXPORT(widen_blended_simd);
HWY_EXPORT(widen_simd);
HWY_EXPORT(ycc_to_rgb_simd);
HWY_EXPORT(grey_to_rgb_simd);

std::size_t copy_until_ff(const std::uint8_t* in, std::size_t count, std::uint8_t* out) {
  return HWY_DYNAMIC_DISPATCH(copy_until_ff_simd)(in, count, out);
}

void blend_rows(const std::uint8_t* near, const std::uint8_t* far, std::size_t count,
                std::uint16_t* out) {
  HWY_DYNAMIC_DISPATCH(blend_rows_simd)(near, far, count, out);
}

void widen_blended(const std::uint16_t* in, std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(widen_blended_simd)(in, count, out);
}

void widen(const std::uint8_t* in, std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(widen_simd)(in, count, out);
}

void ycc_to_rgb(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr,
                std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(ycc_to_rgb_simd)(y, cb, cr, count, out);
}

void grey_to_rgb(const std::uint8_t* y, std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(grey_to_rgb_simd)(y, count, out);
}

}  // namespace precast::data
#endif  // HWY_ONCE
