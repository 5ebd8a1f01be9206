#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/resample/resize.h"

namespace precast::data {

/// The source pixels that each output of a resize along one axis adds up, and their weights.
/// Output d is the sum over t < taps of weight[d * taps + t] * source[start[d] + t]. The number of
/// taps is the same for all outputs (padded with zero weights), because the branches of loops with
/// a fixed length are predicted well. Call a plan function before reading the members.
struct WeightedAxis {
  int taps = 0;
  std::vector<int> start;
  std::vector<float> weight;

  /// Plans the average over the part of the source that each output covers, like OpenCV's
  /// INTER_AREA if no axis grows.
  void plan_area(int source, int outputs);
  /// Plans a triangle filter as wide as two outputs, and at least as wide as two source pixels.
  void plan_triangle(int source, int outputs);
  /// Reverses the order of the outputs.
  void mirror();

  /// Converts the weights of `output` to integers: weight * `one`, rounded so that the sum of the
  /// weights does not change.
  /// @return the number of integers that are not zero.
  int quantize(int output, int one, std::uint16_t* out) const;

 private:
  void resize_to(int outputs, int tap_count);
};

/// Output d is (first * source[start] + second * source[start + 1]) / 2048.
struct Blend {
  int start;
  std::int16_t first, second;
};
inline constexpr int kBlendOne = 2048;

/// Plans two taps per output, with OpenCV's fixed-point weights: for ResizeFilter::area, as
/// INTER_AREA does if an axis grows (pixel edges); for all other filters, as INTER_LINEAR does
/// (half-pixel centres). start and start + 1 may be one pixel outside the source; the edge pixel is
/// then used instead.
void plan_blends(ResizeFilter filter, int source, int outputs, std::vector<Blend>& out);

}  // namespace precast::data
