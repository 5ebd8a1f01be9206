#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/report/chart/line_chart.h"

namespace precast::tools {

/// A key of a grid that was varied, as charts show it.
struct GridAxis {
  std::string key;
  /// The last part of the key, or all of it where two keys end alike.
  std::string label;
  /// Each once; numbers by size, names in the sweep's order.
  std::vector<std::string> values;
  /// The same as numbers; empty if one of them is none.
  std::vector<double> numbers;

  /// Which of `values`.
  [[nodiscard]] std::size_t place(const std::string& value) const;
};

/// The axes with more than one value. @param grid what describe_grid() returns.
[[nodiscard]] std::vector<GridAxis> grid_axes(const nlohmann::ordered_json& grid);

/// A chart as an <svg> element, and what must be said of it; both empty if there is nothing to
/// draw.
struct GridChart {
  std::string svg{};
  std::string remark{};
};

/// The metric over the two axes with most combinations of values, as the mean over all others.
/// Nothing where axes are drawn together, so that few of their combinations are there.
[[nodiscard]] GridChart grid_heat_map(const nlohmann::ordered_json& grid);

/// A line for each combination that has a result, over all axes.
[[nodiscard]] GridChart grid_parallel_coordinates(const nlohmann::ordered_json& grid);

/// @param curves a figure over epochs by trial. The best trials are told by name.
[[nodiscard]] GridChart grid_curves(const nlohmann::ordered_json& grid, const std::string& figure,
                                    const std::map<std::string, std::vector<LinePoint>>& curves);

}  // namespace precast::tools
