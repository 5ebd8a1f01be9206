#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/report/chart/line_chart.h"

namespace precast::tools {

/// A key of a grid with several values, as shown in charts.
struct GridAxis {
  std::string key;
  /// The last part of the key, or the full key if another key has the same last part.
  std::string label;
  /// The values without duplicates: numbers in ascending order, names in the sweep's order.
  std::vector<std::string> values;
  /// `values` as numbers; empty if any of them is not a number.
  std::vector<double> numbers;

  /// Returns the index of `value` in `values`.
  [[nodiscard]] std::size_t position(const std::string& value) const;
};

/// The axes with more than one value. @param grid the result of describe_grid().
[[nodiscard]] std::vector<GridAxis> grid_axes(const nlohmann::ordered_json& grid);

/// A chart as an <svg> element, and a remark about it; both empty if there is nothing to draw.
struct GridChart {
  std::string svg{};
  std::string remark{};
};

/// A heat map of the metric over the two axes with the most combinations of values, averaged over
/// the other axes. A pair of axes is ignored if one of them has more than 20 values, or if at most
/// half of the combinations of the pair exist, as when the axes are zipped or drawn together.
[[nodiscard]] GridChart grid_heat_map(const nlohmann::ordered_json& grid);

/// Parallel coordinates: a line over all axes and the metric for each of the best 500 combinations
/// with a result.
[[nodiscard]] GridChart grid_parallel_coordinates(const nlohmann::ordered_json& grid);

/// The curves of at most 203 trials; the best three are labelled with their names. @param curves
/// for each trial the values of `figure` over epochs.
[[nodiscard]] GridChart grid_curves(const nlohmann::ordered_json& grid, const std::string& figure,
                                    const std::map<std::string, std::vector<LinePoint>>& curves);

}  // namespace precast::tools
