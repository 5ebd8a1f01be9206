#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/resample/resize.h"

namespace precast::data {

/// What one axis of a resize adds up. One of the plans is made before anything is read.

/// Output d is the sum over t < taps of weight[d * taps + t] * source[start[d] + t]. The number of
/// taps is the same for all outputs (padded with zero weights): loops of fixed length predict well.
struct WeightedAxis {
  int taps = 0;
  std::vector<int> start;
  std::vector<float> weight;

  /// The average over the output's share of the source, as OpenCV's INTER_AREA where no axis grows.
  void plan_area(int source, int outputs);
  /// A triangle as wide as two outputs, at least as two source pixels.
  void plan_triangle(int source, int outputs);
  /// The outputs in reverse.
  void mirror();

  /// Whole numbers near weight * one, which add up to what the output's weights add up to.
  /// @return how many are not zero.
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
