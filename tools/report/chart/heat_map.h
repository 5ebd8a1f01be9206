#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// One value for each combination of two settings, as coloured cells with numbers.
struct HeatMap {
  std::string title{};
  std::string x_label{};
  std::string y_label{};
  /// The settings, in drawing order: columns from the left, rows from the top.
  std::vector<std::string> columns{};
  std::vector<std::string> rows{};
  /// values[row][column]; NaN or missing if there is no result.
  std::vector<std::vector<double>> values{};
  /// The name of the values, such as "top-1", shown next to the colour scale.
  std::string value_label{};
  /// Digits after the decimal point; -1: about four significant digits.
  int digits = -1;
};

/// Returns the chart as one <svg> element. Cells with large values are bright. Without rows,
/// columns or values, the chart says "no data".
[[nodiscard]] std::string heat_map_svg(const HeatMap& map);

}  // namespace precast::tools
