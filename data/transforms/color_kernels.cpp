#include "data/transforms/color_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/transforms/color_kernels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace precast::data::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> kFloats;
using F = hn::Vec<decltype(kFloats)>;
const hn::Rebind<std::uint8_t, decltype(kFloats)> kBytes;
const hn::Rebind<std::int32_t, decltype(kFloats)> kInts;

/// The channels of a few pixels, in one vector each.
struct Colours {
  F r, g, b;
};

Colours load(const std::uint8_t* rgb) {
  auto r = hn::Zero(kBytes);
  auto g = r;
  auto b = r;
  hn::LoadInterleaved3(kBytes, rgb, r, g, b);
  return {hn::ConvertTo(kFloats, hn::PromoteTo(kInts, r)),
          hn::ConvertTo(kFloats, hn::PromoteTo(kInts, g)),
          hn::ConvertTo(kFloats, hn::PromoteTo(kInts, b))};
}

/// Truncates to integers in 0..255.
void store(const Colours& c, std::uint8_t* rgb) {
  const auto to_bytes = [](F v) { return hn::DemoteTo(kBytes, hn::ConvertTo(kInts, v)); };
  hn::StoreInterleaved3(to_bytes(c.r), to_bytes(c.g), to_bytes(c.b), kBytes, rgb);
}

/// Calls `change` (Colours -> Colours) on all pixels; the last group is padded if it is incomplete.
template <typename Change>
void for_all(std::uint8_t* rgb, std::size_t pixels, const Change& change) {
  const std::size_t lanes = hn::Lanes(kFloats);
  std::size_t p = 0;
  for (; p + lanes <= pixels; p += lanes) store(change(load(rgb + 3 * p)), rgb + 3 * p);
  if (p == pixels) return;
  std::uint8_t last[3 * HWY_MAX_BYTES / sizeof(float)] = {};
  std::memcpy(last, rgb + 3 * p, 3 * (pixels - p));
  store(change(load(last)), last);
  std::memcpy(rgb + 3 * p, last, 3 * (pixels - p));
}

F luminance(const Colours& c) {
  const F sum = hn::MulAdd(
      hn::Set(kFloats, 0.114F), c.b,
      hn::MulAdd(hn::Set(kFloats, 0.587F), c.g, hn::Mul(hn::Set(kFloats, 0.2989F), c.r)));
  return hn::Floor(sum);
}

std::uint64_t sum_of_luminance_simd(const std::uint8_t* rgb, std::size_t pixels) {
  const std::size_t lanes = hn::Lanes(kFloats);
  // A float can represent the sum of 65536 values of 255 exactly.
  constexpr std::size_t kGroup = 65536;
  std::uint64_t total = 0;
  std::size_t p = 0;
  while (p + lanes <= pixels) {
    F sum = hn::Zero(kFloats);
    for (std::size_t n = 0; n < kGroup && p + lanes <= pixels; ++n, p += lanes) {
      sum = hn::Add(sum, luminance(load(rgb + 3 * p)));
    }
    HWY_ALIGN float parts[HWY_MAX_BYTES / sizeof(float)];
    hn::Store(sum, kFloats, parts);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      total += static_cast<std::uint64_t>(parts[lane]);
    }
  }
  if (p < pixels) {
    std::uint8_t last[3 * HWY_MAX_BYTES / sizeof(float)] = {};
    std::memcpy(last, rgb + 3 * p, 3 * (pixels - p));
    HWY_ALIGN float parts[HWY_MAX_BYTES / sizeof(float)];
    hn::Store(luminance(load(last)), kFloats, parts);
    for (std::size_t lane = 0; lane < pixels - p; ++lane) {
      total += static_cast<std::uint64_t>(parts[lane]);
    }
  }
  return total;
}

void blend_with_luminance_simd(std::uint8_t* rgb, std::size_t pixels, float factor) {
  const F own = hn::Set(kFloats, factor);
  const F other = hn::Set(kFloats, 1.0F - factor);
  for_all(rgb, pixels, [&](const Colours& c) HWY_ATTR {
    const F grey = hn::Mul(other, luminance(c));
    return Colours{hn::MulAdd(own, c.r, grey), hn::MulAdd(own, c.g, grey),
                   hn::MulAdd(own, c.b, grey)};
  });
}

/// Hue in sixths of a turn; 0 for grey pixels.
F hue_of(const Colours& c, F high, F range) {
  const F zero = hn::Zero(kFloats);
  const auto grey = hn::Eq(range, zero);
  const F inverse =
      hn::Div(hn::Set(kFloats, 1.0F), hn::IfThenElse(grey, hn::Set(kFloats, 1.0F), range));
  const F from_red = hn::Mul(hn::Sub(c.g, c.b), inverse);
  const F from_green = hn::MulAdd(hn::Sub(c.b, c.r), inverse, hn::Set(kFloats, 2.0F));
  const F from_blue = hn::MulAdd(hn::Sub(c.r, c.g), inverse, hn::Set(kFloats, 4.0F));
  const F hue = hn::IfThenElse(hn::Eq(high, c.r), from_red,
                               hn::IfThenElse(hn::Eq(high, c.g), from_green, from_blue));
  return hn::IfThenZeroElse(grey, hue);
}

/// Returns one channel of a colour with this hue: high - range * clamp(min(k, 4 - k), 0, 1), where
/// k = (offset + hue) mod 6 (HSV of Smith 1978). `offset` is 5 for red, 3 for green and 1 for blue.
F channel(float offset, F hue, F high, F range) {
  const F six = hn::Set(kFloats, 6.0F);
  const F turned = hn::Add(hn::Set(kFloats, offset), hue);
  const F k = hn::NegMulAdd(six, hn::Floor(hn::Mul(turned, hn::Set(kFloats, 1.0F / 6))), turned);
  const F ramp = hn::Min(k, hn::Sub(hn::Set(kFloats, 4.0F), k));
  const F share = hn::Min(hn::Max(ramp, hn::Zero(kFloats)), hn::Set(kFloats, 1.0F));
  // torchvision converts to floats in 0..1, and back with a factor of 255.999.
  return hn::Mul(hn::NegMulAdd(range, share, high), hn::Set(kFloats, 255.999F / 255.0F));
}

void rotate_hue_simd(std::uint8_t* rgb, std::size_t pixels, float shift) {
  const F sixths = hn::Set(kFloats, 6 * shift);
  for_all(rgb, pixels, [&](const Colours& c) HWY_ATTR {
    const F high = hn::Max(c.r, hn::Max(c.g, c.b));
    const F range = hn::Sub(high, hn::Min(c.r, hn::Min(c.g, c.b)));
    const F hue = hn::Add(hue_of(c, high, range), sixths);
    return Colours{channel(5, hue, high, range), channel(3, hue, high, range),
                   channel(1, hue, high, range)};
  });
}

}  // namespace
}  // namespace precast::data::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace precast::data {

HWY_EXPORT(sum_of_luminance_simd);
HWY_EXPORT(blend_with_luminance_simd);
HWY_EXPORT(rotate_hue_simd);

std::uint64_t sum_of_luminance(const std::uint8_t* rgb, std::size_t pixels) {
  return HWY_DYNAMIC_DISPATCH(sum_of_luminance_simd)(rgb, pixels);
}

void blend_with_luminance(std::uint8_t* rgb, std::size_t pixels, float factor) {
  HWY_DYNAMIC_DISPATCH(blend_with_luminance_simd)(rgb, pixels, factor);
}

void rotate_hue(std::uint8_t* rgb, std::size_t pixels, float shift) {
  HWY_DYNAMIC_DISPATCH(rotate_hue_simd)(rgb, pixels, shift);
}

}  // namespace precast::data
#endif
