#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/report/chart/line_chart.h"

namespace precast::tools {

/// A varied key of a grid, as shown in charts.
struct GridAxis {
  std::string key;
  /// The last part of the key, or the full key if two keys end alike.
  std::string label;
  /// Without duplicates; numbers by size, names in the sweep's order.
  std::vector<std::string> values;
  /// `values` as numbers; empty if any of them is not a number.
  std::vector<double> numbers;

  /// Index into `values`.
  [[nodiscard]] std::size_t place(const std::string& value) const;
};

/// The axes with more than one value. @param grid the result of describe_grid().
[[nodiscard]] std::vector<GridAxis> grid_axes(const nlohmann::ordered_json& grid);

/// A chart as an <svg> element, and a note on it; both empty if there is nothing to draw.
struct GridChart {
  std::string svg{};
  std::string remark{};
};

/// The metric over the two axes with the most combinations of values, averaged over all others.
/// Empty if axes are zipped or drawn together, so that few of their combinations exist.
[[nodiscard]] GridChart grid_heat_map(const nlohmann::ordered_json& grid);

/// A line for each combination that has a result, over all axes.
[[nodiscard]] GridChart grid_parallel_coordinates(const nlohmann::ordered_json& grid);

/// @param curves a figure over epochs by trial. The best trials are labelled by name.
[[nodiscard]] GridChart grid_curves(const nlohmann::ordered_json& grid, const std::string& figure,
                                    const std::map<std::string, std::vector<LinePoint>>& curves);

}  // namespace precast::tools
