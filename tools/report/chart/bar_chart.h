#pragma once

#include <string>
#include <vector>

#include "tools/report/chart/axis.h"

namespace precast::tools {

struct Bar {
  std::string label{};
  /// At least 0 on a linear axis, above 0 on a logarithmic one. For other values, only the text is
  /// drawn.
  double value = 0;
  /// Written after the value.
  std::string note{};
  int colour = 0;
};

/// Horizontal bars, one below the other.
struct BarChart {
  std::string title{};
  /// The unit of the values, such as "img/s".
  std::string unit{};
  std::vector<Bar> bars{};
  /// A linear axis starts at 0, a logarithmic axis at a power of ten below the minimum.
  Scale scale = Scale::linear;
  double width = 760;
};

/// Returns the chart as one <svg> element. Without bars, it says "no data".
[[nodiscard]] std::string bar_chart_svg(const BarChart& chart);

/// Bars of equal length that are divided into shares, such as the shares of a run's time.
struct ShareChart {
  std::string title{};
  /// The names of the shares, in the order of their colours.
  std::vector<std::string> parts{};
  struct Row {
    std::string label{};
    /// One value per part, all in the same unit. NaN and negative values count as 0. If all values
    /// are 0, the row says "no data".
    std::vector<double> values{};
  };
  std::vector<Row> rows{};
  double width = 760;
};

[[nodiscard]] std::string share_chart_svg(const ShareChart& chart);

}  // namespace precast::tools
