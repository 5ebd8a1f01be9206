#pragma once

#include <cstdint>

namespace precast::recipes {

/// Functions that convert a fraction of a run to whole epochs, or a fraction of a side to whole
/// pixels. In floating point, 0.29 * 100 and 0.07 * 100 differ slightly from 29 and 7, so a product
/// that differs from an integer by at most kShareTolerance counts as that integer. @{

inline constexpr double kShareTolerance = 1e-9;

/// share * whole, rounded down. Neither argument may be negative.
[[nodiscard]] inline std::int64_t floor_share(double share, std::int64_t whole) {
  return static_cast<std::int64_t>(share * static_cast<double>(whole) + kShareTolerance);
}
/// share * whole, rounded up.
[[nodiscard]] inline std::int64_t ceil_share(double share, std::int64_t whole) {
  const std::int64_t down = floor_share(share, whole);
  return share * static_cast<double>(whole) - static_cast<double>(down) > kShareTolerance ? down + 1
                                                                                          : down;
}
/// @}

}  // namespace precast::recipes
