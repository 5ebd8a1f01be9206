#include "data/resample/axis.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace precast::data {
namespace {

/// OpenCV ignores parts of a source pixel that are smaller than this.
constexpr double kNegligible = 1e-3;

/// Source pixels per output. Computed with two divisions, as in OpenCV, because source / outputs
/// can differ in the last bit.
double scale_of(int source, int outputs) {
  const double inverse = static_cast<double>(outputs) / source;
  return 1.0 / inverse;
}

// These two functions replace std::floor and std::ceil, which are not inlined here: calling them
// would take as long as all other work for a plan.
int floor_of(double value) {
  const auto cut = static_cast<int>(value);
  return cut - static_cast<int>(cut > value);
}
int ceil_of(double value) {
  return -floor_of(-value);
}
/// Rounds to nearest even. The magnitude must be less than 2^22.
int round_of(float value) {
  constexpr float kShift = 0x1.8p23F;
  return static_cast<int>(std::bit_cast<std::uint32_t>(value + kShift) -
                          std::bit_cast<std::uint32_t>(kShift));
}

Blend blend_of(int start, float fraction) {
  const auto fixed = [](float weight) {
    return static_cast<std::int16_t>(round_of(weight * kBlendOne));
  };
  return {start, fixed(1.0F - fraction), fixed(fraction)};
}

}  // namespace

void WeightedAxis::resize_to(int outputs, int tap_count) {
  taps = tap_count;
  start.assign(static_cast<std::size_t>(outputs), 0);
  weight.assign(static_cast<std::size_t>(outputs) * static_cast<std::size_t>(tap_count), 0.0F);
}

void WeightedAxis::plan_area(int source, int outputs) {
  const double scale = scale_of(source, outputs);
  resize_to(outputs, std::min(source, ceil_of(scale) + 1));
  for (int d = 0; d < outputs; ++d) {
    const double from = d * scale;
    const double to = from + scale;
    const double cell = std::min(scale, source - from);
    const int last = std::min(floor_of(to), source - 1);
    const int first = std::min(ceil_of(from), last);
    const bool partial_first = first - from > kNegligible;

    // The taps must end inside the source: near its end the window moves left and leading weights
    // stay zero.
    const int begin = std::min(partial_first ? first - 1 : first, source - taps);
    start[static_cast<std::size_t>(d)] = begin;
    float* w = weight.data() + std::ptrdiff_t{d} * taps - begin;
    if (partial_first) w[first - 1] = static_cast<float>((first - from) / cell);
    for (int s = first; s < last; ++s) w[s] = static_cast<float>(1.0 / cell);
    if (to - last > kNegligible) {
      w[last] = static_cast<float>(std::min(std::min(to - last, 1.0), cell) / cell);
    }
  }
}

void WeightedAxis::plan_triangle(int source, int outputs) {
  const double scale = static_cast<double>(source) / outputs;
  const double reach = std::max(scale, 1.0);
  resize_to(outputs, std::min(source, ceil_of(reach) * 2 + 1));
  for (int d = 0; d < outputs; ++d) {
    const double centre = (d + 0.5) * scale;
    const int first = std::max(0, floor_of(centre - reach + 0.5));
    const int last = std::min({source, floor_of(centre + reach + 0.5), first + taps});
    const int begin = std::min(first, source - taps);
    start[static_cast<std::size_t>(d)] = begin;
    float* w = weight.data() + std::ptrdiff_t{d} * taps - begin;
    double sum = 0;
    const auto height_at = [&](int s) {
      return std::max(0.0, 1.0 - std::abs(s + 0.5 - centre) / reach);
    };
    for (int s = first; s < last; ++s) sum += height_at(s);
    for (int s = first; s < last; ++s) w[s] = static_cast<float>(height_at(s) / sum);
  }
}

void WeightedAxis::mirror() {
  std::ranges::reverse(start);
  const auto outputs = static_cast<std::ptrdiff_t>(start.size());
  for (std::ptrdiff_t left = 0, right = outputs - 1; left < right; ++left, --right) {
    std::swap_ranges(weight.begin() + left * taps, weight.begin() + (left + 1) * taps,
                     weight.begin() + right * taps);
  }
}

int WeightedAxis::quantize(int output, int one, std::uint16_t* out) const {
  const float* w = weight.data() + std::ptrdiff_t{output} * taps;
  const auto fixed = [one](float value) { return round_of(value * static_cast<float>(one)); };
  float sum = 0;
  int fixed_sum = 0;
  int largest = 0;
  int used = 0;
  for (int t = 0; t < taps; ++t) {
    const int value = fixed(w[t]);
    out[t] = static_cast<std::uint16_t>(value);
    sum += w[t];
    fixed_sum += value;
    if (value > out[largest]) largest = t;
    if (value != 0) ++used;
  }
  out[largest] = static_cast<std::uint16_t>(out[largest] + std::min(one, fixed(sum)) - fixed_sum);
  return used;
}

void plan_blends(ResizeFilter filter, int source, int outputs, std::vector<Blend>& out) {
  const double inverse = static_cast<double>(outputs) / source;
  const double scale = 1.0 / inverse;
  out.resize(static_cast<std::size_t>(outputs));
  for (int d = 0; d < outputs; ++d) {
    int start = 0;
    float fraction = 0;
    if (filter == ResizeFilter::area) {
      start = floor_of(d * scale);
      fraction = static_cast<float>((d + 1) - (start + 1) * inverse);
      fraction = fraction <= 0 ? 0.0F : fraction - static_cast<float>(floor_of(fraction));
    } else {
      const auto centre = static_cast<float>((d + 0.5) * scale - 0.5);
      start = floor_of(centre);
      fraction = centre - static_cast<float>(start);
    }
    out[static_cast<std::size_t>(d)] = blend_of(start, fraction);
  }
}

}  // namespace precast::data
