#pragma once

#include <string>
#include <vector>

#include "tools/report/chart/axis.h"

namespace precast::tools {

struct Bar {
  std::string label{};
  /// Above 0 on a logarithmic axis, at least 0 on a linear one; others are written without a bar.
  double value = 0;
  /// Written behind the value.
  std::string note{};
  int colour = 0;
};

/// Horizontal bars, one below the other.
struct BarChart {
  std::string title{};
  /// Of the values, as "img/s".
  std::string unit{};
  std::vector<Bar> bars{};
  /// linear: from 0. logarithmic: from a power of ten below the least value.
  Scale scale = Scale::linear;
  double width = 760;
};

/// The chart as one <svg> element; without bars it says "no data".
[[nodiscard]] std::string bar_chart_svg(const BarChart& chart);

/// Bars of equal length cut into shares of a whole: where the time of each run went.
struct ShareChart {
  std::string title{};
  /// What the shares are of, in the order of their colours.
  std::vector<std::string> parts{};
  struct Row {
    std::string label{};
    /// As many as parts, in one unit, at least 0; not a number counts as 0. A row without any says
    /// "no data".
    std::vector<double> values{};
  };
  std::vector<Row> rows{};
  double width = 760;
};

[[nodiscard]] std::string share_chart_svg(const ShareChart& chart);

}  // namespace precast::tools
