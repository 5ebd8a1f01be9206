#include "data/transforms/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace precast::data {

std::string range_problem(std::string_view name, const std::vector<double>& range, double low,
                          double high) {
  const bool valid =
      range.size() == 2 && range[0] >= low && range[0] <= range[1] && range[1] <= high;
  if (valid) return {};
  return fmt::format("{}: expected [smallest, largest] between {} and {}, got [{}]", name, low,
                     high, fmt::join(range, ", "));
}

std::string colour_problem(std::string_view name, const std::vector<double>& colour) {
  const bool valid = colour.size() == 3 &&
                     std::ranges::all_of(colour, [](double v) { return v >= 0 && v <= 255; });
  if (valid) return {};
  return fmt::format("{}: expected three numbers from 0 to 255, got [{}]", name,
                     fmt::join(colour, ", "));
}

std::string indices_problem(std::string_view name, const std::vector<double>& indices) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  const auto wrong = std::ranges::find_if(
      indices, [](double v) { return !(v >= 0 && v < kExact && v == std::floor(v)); });
  if (wrong == indices.end()) return {};
  return fmt::format("{}: expected whole numbers >= 0 (positions in the dataset file), got {}",
                     name, *wrong);
}

std::array<std::uint8_t, 3> to_colour(const std::vector<double>& colour) {
  std::array<std::uint8_t, 3> values{};
  for (std::size_t c = 0; c < 3; ++c) values[c] = static_cast<std::uint8_t>(colour.at(c));
  return values;
}

std::array<std::uint8_t, 3> fill_colour(const std::vector<double>& fill,
                                        std::optional<std::uint8_t> mask_fill) {
  if (!mask_fill) return to_colour(fill);
  return {*mask_fill, *mask_fill, *mask_fill};
}

std::vector<std::uint64_t> sorted_indices(const std::vector<double>& indices) {
  std::vector<std::uint64_t> sorted;
  for (const double index : indices) sorted.push_back(static_cast<std::uint64_t>(index));
  std::ranges::sort(sorted);
  return sorted;
}

}  // namespace precast::data
