#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/resample/resize.h"

namespace precast::data {

/// The source pixels and weights that each output of a resize adds up, along one axis. Call one of
/// the plan functions before reading the members.

/// Output d is the sum over t < taps of weight[d * taps + t] * source[start[d] + t]. The number of
/// taps is the same for all outputs (padded with zero weights), because the branches of loops with
/// a fixed length are predicted well.
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

  /// Rounds weight * one to whole numbers that have the same sum as the output's weights.
  /// @return the number of weights that are not zero.
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

/// OpenCV's two-tap plans, with its fixed-point weights: INTER_AREA's if an axis grows
/// (ResizeFilter::area, corner-aligned) and INTER_LINEAR's (half-pixel centres). start and start +
/// 1 may be one outside the source, where the edge pixel is used instead.
void plan_blends(ResizeFilter filter, int source, int outputs, std::vector<Blend>& out);

}  // namespace precast::data
