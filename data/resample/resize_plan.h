#pragma once

#include <vector>

#include "data/resample/axis.h"
#include "data/resample/resize.h"

namespace precast::data {

/// The source pixels and weights of a resize, for each column and each row of the output. Keeps its
/// memory between calls.
struct ResizePlan {
  /// How a resize is computed.
  enum class Method {
    /// Two taps on both axes (x_blends, y_blends): columns first, then rows.
    blend,
    /// Any number of taps (x_axis, y_axis): rows first, then columns.
    convolve,
    /// As `convolve`, but in floating point: with more than kMaxFixedTaps taps, the errors of
    /// truncated products would add up to one level.
    convolve_in_float
  };
  static constexpr int kMaxFixedTaps = 32;

  std::vector<Blend> x_blends, y_blends;
  WeightedAxis x_axis, y_axis;

  /// Plans both axes. @param flip mirrors the output left to right.
  Method plan(int height, int width, int out_height, int out_width, bool flip, ResizeFilter filter);
};

/// Whether both axes have two taps. If no axis shrinks, a triangle filter covers just the two
/// pixels next to the centre.
[[nodiscard]] bool has_two_taps(int height, int width, int out_height, int out_width,
                                ResizeFilter filter);

/// Returns the largest number of taps of a resize from at most `source` to `output` px.
[[nodiscard]] int max_taps(int source, int output, ResizeFilter filter);

}  // namespace precast::data
