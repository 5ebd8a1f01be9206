#pragma once

#include <cstdint>

namespace precast::recipes {

/// Fractions of a run in whole epochs, or of a side in whole pixels. In floating point, 0.7 * 10
/// and 0.1 * 30 differ slightly from 7 and 3, so a value that is this close to a whole number
/// counts as that number. @{

inline constexpr double kShareRounding = 1e-9;

/// share * whole, rounded down. Neither is negative.
[[nodiscard]] inline std::int64_t whole_share(double share, std::int64_t whole) {
  return static_cast<std::int64_t>(share * static_cast<double>(whole) + kShareRounding);
}
/// share * whole, rounded up.
[[nodiscard]] inline std::int64_t begun_share(double share, std::int64_t whole) {
  const std::int64_t down = whole_share(share, whole);
  return share * static_cast<double>(whole) - static_cast<double>(down) > kShareRounding ? down + 1
                                                                                         : down;
}
/// @}

}  // namespace precast::recipes
