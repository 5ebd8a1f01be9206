#include "data/resample/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "data/resample/resize_kernels.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// OpenCV leaves out parts of a source pixel smaller than this.
constexpr double kNegligible = 1e-3;
/// OpenCV's bilinear weights are fixed point with 11 bits.
constexpr float kWeightSteps = 2048.0F;

double scale_of(int source, int outputs) {
  // Two divisions, as OpenCV computes it: source / outputs differs in the last bit.
  const double inverse = static_cast<double>(outputs) / source;
  return 1.0 / inverse;
}

float quantized(float weight) {
  return std::nearbyint(weight * kWeightSteps) / kWeightSteps;
}

}  // namespace

void AreaResizer::Axis::resize_to(int outputs, int tap_count) {
  taps = tap_count;
  start.assign(static_cast<std::size_t>(outputs), 0);
  weight.assign(static_cast<std::size_t>(outputs) * static_cast<std::size_t>(tap_count), 0.0F);
}

void AreaResizer::Axis::plan_area(int source, int outputs) {
  const double scale = scale_of(source, outputs);
  resize_to(outputs, std::min(source, static_cast<int>(std::ceil(scale)) + 1));
  for (int d = 0; d < outputs; ++d) {
    const double from = d * scale;
    const double to = from + scale;
    const double cell = std::min(scale, source - from);
    const int last = std::min(static_cast<int>(std::floor(to)), source - 1);
    const int first = std::min(static_cast<int>(std::ceil(from)), last);
    const bool partial_first = first - from > kNegligible;

    // The taps must end inside the source: near its end the window moves left and leading weights
    // stay zero.
    const int begin = std::min(partial_first ? first - 1 : first, source - taps);
    start[static_cast<std::size_t>(d)] = begin;
    float* w = weight.data() + static_cast<std::ptrdiff_t>(d) * taps - begin;
    if (partial_first) w[first - 1] = static_cast<float>((first - from) / cell);
    for (int s = first; s < last; ++s) w[s] = static_cast<float>(1.0 / cell);
    if (to - last > kNegligible) {
      w[last] = static_cast<float>(std::min(std::min(to - last, 1.0), cell) / cell);
    }
  }
}

void AreaResizer::Axis::plan_bilinear(int source, int outputs) {
  const double scale = scale_of(source, outputs);
  const double inverse = static_cast<double>(outputs) / source;
  resize_to(outputs, std::min(source, 2));
  for (int d = 0; d < outputs; ++d) {
    int s = static_cast<int>(std::floor(d * scale));
    auto fraction = static_cast<float>((d + 1) - (s + 1) * inverse);
    fraction = fraction <= 0 ? 0.0F : fraction - std::floor(fraction);
    if (s >= source - 1) {
      s = source - 1;
      fraction = 0;
    }
    const int begin = std::min(s, source - taps);
    start[static_cast<std::size_t>(d)] = begin;
    float* w = weight.data() + static_cast<std::ptrdiff_t>(d) * taps;
    w[s - begin] = quantized(1.0F - fraction);
    if (fraction > 0) w[s - begin + 1] = quantized(fraction);
  }
}

void AreaResizer::Axis::mirror() {
  std::ranges::reverse(start);
  const auto outputs = static_cast<std::ptrdiff_t>(start.size());
  for (std::ptrdiff_t left = 0, right = outputs - 1; left < right; ++left, --right) {
    std::swap_ranges(weight.begin() + left * taps, weight.begin() + (left + 1) * taps,
                     weight.begin() + right * taps);
  }
}

void AreaResizer::resize(const ImageView& in, std::uint8_t* out, int out_height, int out_width,
                         bool flip) {
  require(in.height > 0 && in.width > 0 && out_height > 0 && out_width > 0,
          "images to resize have pixels");
  const auto row_bytes = static_cast<std::size_t>(out_width) * 3;
  if (in.height == out_height && in.width == out_width && !flip) {
    for (int y = 0; y < out_height; ++y)
      std::memcpy(out + row_bytes * static_cast<std::size_t>(y), in.row(y), row_bytes);
    return;
  }

  const bool shrinks = out_height <= in.height && out_width <= in.width;
  if (shrinks) {
    x_.plan_area(in.width, out_width);
    y_.plan_area(in.height, out_height);
  } else {
    x_.plan_bilinear(in.width, out_width);
    y_.plan_bilinear(in.height, out_height);
  }
  if (flip) x_.mirror();

  const auto in_row_values = static_cast<std::size_t>(in.width) * 3;
  column_sums_.resize(in_row_values + 1);  // one lane more, which weigh_pixels reads
  finished_row_.resize(row_bytes + 1);     // and one which it writes
  rows_.resize(static_cast<std::size_t>(y_.taps));
  // Rows first: they are contiguous, so the larger part of the work runs over whole vectors.
  for (int y = 0; y < out_height; ++y) {
    const int first_row = y_.start[static_cast<std::size_t>(y)];
    for (int t = 0; t < y_.taps; ++t) rows_[static_cast<std::size_t>(t)] = in.row(first_row + t);
    weigh_rows(rows_.data(), y_.weight.data() + std::ptrdiff_t{y} * y_.taps, y_.taps, in_row_values,
               column_sums_.data());
    weigh_pixels(column_sums_.data(), x_.start.data(), x_.weight.data(), x_.taps, out_width,
                 finished_row_.data());
    round_to_u8(finished_row_.data(), row_bytes, out + row_bytes * static_cast<std::size_t>(y));
  }
}

}  // namespace precast::data
