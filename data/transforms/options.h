#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace precast::data {

/// Checks of options that several transforms share. Each returns the problem, or an empty string.
/// @{
/// Checks that `range` is [smallest, largest] within [low, high].
[[nodiscard]] std::string range_problem(std::string_view name, const std::vector<double>& range,
                                        double low, double high);
/// Checks that `colour` is three values from 0 to 255.
[[nodiscard]] std::string colour_problem(std::string_view name, const std::vector<double>& colour);
/// Checks that `indices` are whole numbers of 0 or more.
[[nodiscard]] std::string indices_problem(std::string_view name,
                                          const std::vector<double>& indices);
/// @}

/// Converts a colour option to pixel values.
[[nodiscard]] std::array<std::uint8_t, 3> to_colour(const std::vector<double>& colour);
/// The pixel values of areas outside the image: those of the option `fill` or, for a mask, the
/// mask's value in each channel.
[[nodiscard]] std::array<std::uint8_t, 3> fill_colour(const std::vector<double>& fill,
                                                      std::optional<std::uint8_t> mask_fill);
/// Returns the indices as sorted integers, for a binary search.
[[nodiscard]] std::vector<std::uint64_t> sorted_indices(const std::vector<double>& indices);

}  // namespace precast::data
