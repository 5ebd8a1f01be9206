#include "data/image/luma.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/image/luma.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace precast::data::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::uint32_t kRed = 19595, kGreen = 38470, kBlue = 7471, kHalf = 32768;

std::uint8_t luma(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((kRed * rgb[0] + kGreen * rgb[1] + kBlue * rgb[2] + kHalf) >>
                                   16);
}

using Wide = hn::ScalableTag<std::uint32_t>;
using Narrow = hn::Rebind<std::uint8_t, Wide>;

HWY_INLINE hn::Vec<Wide> weighted(hn::Vec<Narrow> channel, std::uint32_t weight) {
  return hn::Mul(hn::PromoteTo(Wide(), channel), hn::Set(Wide(), weight));
}

HWY_INLINE hn::Vec<Narrow> luma_vector(const std::uint8_t* rgb) {
  const Wide wide;
  const Narrow narrow;
  hn::Vec<Narrow> red, green, blue;
  hn::LoadInterleaved3(narrow, rgb, red, green, blue);
  const auto sum = hn::Add(hn::Add(weighted(red, kRed), weighted(green, kGreen)),
                           hn::Add(weighted(blue, kBlue), hn::Set(wide, kHalf)));
  return hn::DemoteTo(narrow, hn::BitCast(hn::RebindToSigned<Wide>(), hn::ShiftRight<16>(sum)));
}

/// Also works if `grey` is the beginning of `rgb`: each write overwrites only bytes that have been
/// read.
void luma_values(const std::uint8_t* rgb, std::size_t pixels, std::uint8_t* grey) {
  const std::size_t lanes = hn::Lanes(Narrow());
  std::size_t p = 0;
  for (; p + lanes <= pixels; p += lanes) hn::StoreU(luma_vector(rgb + 3 * p), Narrow(), grey + p);
  for (; p < pixels; ++p) grey[p] = luma(rgb + 3 * p);
}

void replace_values(std::uint8_t* rgb, std::size_t pixels) {
  const std::size_t lanes = hn::Lanes(Narrow());
  std::size_t p = 0;
  for (; p + lanes <= pixels; p += lanes) {
    const auto grey = luma_vector(rgb + 3 * p);
    hn::StoreInterleaved3(grey, grey, grey, Narrow(), rgb + 3 * p);
  }
  for (; p < pixels; ++p) {
    std::uint8_t* const pixel = rgb + 3 * p;
    pixel[0] = pixel[1] = pixel[2] = luma(pixel);
  }
}

}  // namespace
}  // namespace precast::data::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace precast::data {
namespace {

HWY_EXPORT(luma_values);
HWY_EXPORT(replace_values);

}  // namespace

void luma_of(const std::uint8_t* rgb, std::size_t pixels, std::uint8_t* grey) {
  HWY_DYNAMIC_DISPATCH(luma_values)(rgb, pixels, grey);
}

void replace_with_luma(std::uint8_t* rgb, std::size_t pixels) {
  HWY_DYNAMIC_DISPATCH(replace_values)(rgb, pixels);
}

}  // namespace precast::data
#endif  // HWY_ONCE
