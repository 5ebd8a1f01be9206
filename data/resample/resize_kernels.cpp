#include "data/resample/resize_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/resample/resize_kernels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace precast::data::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
hn::Vec<D> load_bytes(D d, const std::uint8_t* bytes) {
  const hn::Rebind<std::uint8_t, D> d_u8;
  const hn::Rebind<std::int32_t, D> d_i32;
  return hn::ConvertTo(d, hn::PromoteTo(d_i32, hn::LoadU(d_u8, bytes)));
}

void weigh_rows_simd(const std::uint8_t* const* HWY_RESTRICT rows,
                     const float* HWY_RESTRICT weights, int taps, std::size_t count,
                     float* HWY_RESTRICT out) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    auto sum0 = hn::Zero(d);
    auto sum1 = hn::Zero(d);
    for (int t = 0; t < taps; ++t) {
      const auto weight = hn::Set(d, weights[t]);
      sum0 = hn::MulAdd(weight, load_bytes(d, rows[t] + i), sum0);
      sum1 = hn::MulAdd(weight, load_bytes(d, rows[t] + i + lanes), sum1);
    }
    hn::StoreU(sum0, d, out + i);
    hn::StoreU(sum1, d, out + i + lanes);
  }
  for (; i < count; ++i) {
    float sum = 0;
    // fma as in the lanes above, so that a pixel's value does not depend on where in the row it
    // lies. On a target without FMA the lanes round twice, and the last bit may differ here.
    for (int t = 0; t < taps; ++t) sum = std::fma(weights[t], static_cast<float>(rows[t][i]), sum);
    out[i] = sum;
  }
}

/// One pixel: lanes 0-2 are its channels; lane 3 is its neighbour's first and overwritten by the
/// next store.
#if HWY_TARGET == HWY_SCALAR
void weigh_pixel(const float* source, const float* weight, int taps, float* out) {
  for (int c = 0; c < 3; ++c) {
    out[c] = weight[0] * source[c];
    for (int t = 1; t < taps; ++t) out[c] = std::fma(weight[t], source[3 * t + c], out[c]);
  }
}
#else
void weigh_pixel(const float* source, const float* weight, int taps, float* out) {
  const hn::FixedTag<float, 4> d;
  auto sum = hn::Mul(hn::Set(d, weight[0]), hn::LoadU(d, source));
  for (int t = 1; t < taps; ++t) {
    sum = hn::MulAdd(hn::Set(d, weight[t]), hn::LoadU(d, source + 3 * t), sum);
  }
  hn::StoreU(sum, d, out);
}
#endif

void weigh_pixels_simd(const float* HWY_RESTRICT in, const int* HWY_RESTRICT starts,
                       const float* HWY_RESTRICT weights, int taps, int pixels,
                       float* HWY_RESTRICT out) {
  for (int p = 0; p < pixels; ++p) {
    weigh_pixel(in + std::ptrdiff_t{3} * starts[p], weights + std::ptrdiff_t{p} * taps, taps,
                out + std::ptrdiff_t{3} * p);
  }
}

void round_to_u8_simd(const float* HWY_RESTRICT in, std::size_t count,
                      std::uint8_t* HWY_RESTRICT out) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<std::uint8_t, decltype(d)> d_u8;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::DemoteTo(d_u8, hn::NearestInt(hn::LoadU(d, in + i))), d_u8, out + i);
  }
  for (; i < count; ++i) {
    out[i] = static_cast<std::uint8_t>(std::clamp(std::lrint(in[i]), 0L, 255L));
  }
}

}  // namespace
}  // namespace precast::data::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace precast::data {

HWY_EXPORT(weigh_rows_simd);
HWY_EXPORT(weigh_pixels_simd);
HWY_EXPORT(round_to_u8_simd);

void weigh_rows(const std::uint8_t* const* rows, const float* weights, int taps, std::size_t count,
                float* out) {
  HWY_DYNAMIC_DISPATCH(weigh_rows_simd)(rows, weights, taps, count, out);
}

void weigh_pixels(const float* in, const int* starts, const float* weights, int taps, int pixels,
                  float* out) {
  HWY_DYNAMIC_DISPATCH(weigh_pixels_simd)(in, starts, weights, taps, pixels, out);
}

void round_to_u8(const float* in, std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(round_to_u8_simd)(in, count, out);
}

}  // namespace precast::data
#endif  // HWY_ONCE
