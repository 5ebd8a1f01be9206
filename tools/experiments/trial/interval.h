#pragma once

#include <span>

namespace precast::tools {

/// A mean over repetitions (seeds) and its uncertainty.
struct MeanInterval {
  double mean = 0;
  /// Half of the 95 % confidence interval by Student's t; 0 with fewer than two values.
  double half_width = 0;
  int count = 0;
};

/// Computes the mean of `values` and its interval. All members are 0 if there are no values.
/// @param values finite
[[nodiscard]] MeanInterval mean_interval(std::span<const double> values);

}  // namespace precast::tools
