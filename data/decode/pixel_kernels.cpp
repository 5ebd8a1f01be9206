#include "data/decode/pixel_kernels.h"

// Structs of vectors need vectors of known size.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
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

// The factors of chroma (jdcolor.c). libjpeg's red and blue are fractions of 65536, 26345 and
// -14942; these fractions of 32768 give the same for each of the 256 values of chroma.
constexpr std::int16_t kRedFromCr = 13173;     // 0.40200 (the rest of 1.40200 is added whole)
constexpr std::int16_t kBlueFromCb = -7471;    // -0.22800 (1.77200 = 2 - 0.22800)
constexpr std::int16_t kGreenFromCb = -22554;  // -0.34414, of 65536
constexpr std::int16_t kGreenFromCr = 18734;   // 0.28586 (-0.71414 = 0.28586 - 1), of 65536

/// (kGreenFromCb * cb + kGreenFromCr * cr + 32768) >> 16.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V green_fraction(D d, V cb, V cr) {
#if HWY_TARGET == HWY_SCALAR
  const int sum = kGreenFromCb * hn::GetLane(cb) + kGreenFromCr * hn::GetLane(cr);
  return hn::Set(d, static_cast<std::int16_t>((sum + 32768) >> 16));
#else
  const hn::RepartitionToWide<D> d32;
  const auto factors = hn::BitCast(
      d, hn::Set(d32, (std::int32_t{kGreenFromCr} << 16) | (std::int32_t{kGreenFromCb} & 0xFFFF)));
  const auto sum_up = [&](V pairs) HWY_ATTR {
    auto odd = hn::Zero(d32);
    const auto even = hn::ReorderWidenMulAccumulate(d32, pairs, factors, hn::Set(d32, 32768), odd);
    return hn::ShiftRight<16>(hn::RearrangeToOddPlusEven(even, odd));
  };
  return hn::ReorderDemote2To(d, sum_up(hn::InterleaveLower(d, cb, cr)),
                              sum_up(hn::InterleaveUpper(d, cb, cr)));
#endif
}

/// Pixels of one colour each.
template <class D>
struct Colours {
  hn::Vec<D> red, green, blue;
};

/// A vector of pixels of which `d` has 16-bit numbers.
template <class D, class D8 = hn::Rebind<std::uint8_t, D>>
HWY_INLINE Colours<D8> ycc_colours(D d, const std::uint8_t* HWY_RESTRICT y,
                                   const std::uint8_t* HWY_RESTRICT cb,
                                   const std::uint8_t* HWY_RESTRICT cr) {
  const D8 d_u8;
  const auto centre = hn::Set(d, 128);
  const auto luma = hn::PromoteTo(d, hn::LoadU(d_u8, y));
  const auto blue = hn::Sub(hn::PromoteTo(d, hn::LoadU(d_u8, cb)), centre);
  const auto red = hn::Sub(hn::PromoteTo(d, hn::LoadU(d_u8, cr)), centre);
  const auto r = hn::Add(luma, hn::Add(red, hn::MulFixedPoint15(red, hn::Set(d, kRedFromCr))));
  const auto g = hn::Add(luma, hn::Sub(green_fraction(d, blue, red), red));
  const auto b = hn::Add(
      luma, hn::Add(hn::Add(blue, blue), hn::MulFixedPoint15(blue, hn::Set(d, kBlueFromCb))));
  return {hn::DemoteTo(d_u8, r), hn::DemoteTo(d_u8, g), hn::DemoteTo(d_u8, b)};
}

void ycc_to_rgb_simd(const std::uint8_t* HWY_RESTRICT y, const std::uint8_t* HWY_RESTRICT cb,
                     const std::uint8_t* HWY_RESTRICT cr, std::size_t count,
                     std::uint8_t* HWY_RESTRICT out) {
  const hn::ScalableTag<std::int16_t> d;
  const std::size_t lanes = hn::Lanes(d);
#if HWY_TARGET == HWY_SCALAR
  const hn::Rebind<std::uint8_t, decltype(d)> d_u8;
  for (std::size_t i = 0; i < count; i += lanes) {
    const auto all = ycc_colours(d, y + i, cb + i, cr + i);
    hn::StoreInterleaved3(all.red, all.green, all.blue, d_u8, out + 3 * i);
  }
#else
  // Whole vectors of bytes: interleaving takes most of the time.
  const hn::Repartition<std::uint8_t, decltype(d)> d_u8;
  for (std::size_t i = 0; i < count; i += 2 * lanes) {
    const auto low = ycc_colours(d, y + i, cb + i, cr + i);
    const auto high = ycc_colours(d, y + i + lanes, cb + i + lanes, cr + i + lanes);
    hn::StoreInterleaved3(hn::Combine(d_u8, high.red, low.red),
                          hn::Combine(d_u8, high.green, low.green),
                          hn::Combine(d_u8, high.blue, low.blue), d_u8, out + 3 * i);
  }
#endif
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
