#pragma once

#include <span>

namespace precast::tools {

/// A mean over repetitions (seeds) and how far it may be off.
struct MeanInterval {
  double mean = 0;
  /// Half of the 95 % confidence interval by Student's t; 0 with fewer than two values.
  double half_width = 0;
  int count = 0;
};

/// @param values finite; none: all zero.
[[nodiscard]] MeanInterval mean_interval(std::span<const double> values);

}  // namespace precast::tools
