#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/report/chart/axis.h"
#include "tools/report/chart/frame.h"

namespace precast::tools {

struct ScatterPoint {
  double x = 0;
  double y = 0;
  /// Written next to the point if there is room, and always in its tooltip.
  std::string label{};
  /// Ends of the error bar.
  std::optional<double> y_low{};
  std::optional<double> y_high{};
};

struct ScatterSeries {
  std::string label{};
  std::vector<ScatterPoint> points{};
  int colour = 0;
  /// dot for measured values, diamond for published ones.
  Mark mark = Mark::dot;
  /// Whether to connect the points in their order.
  bool joined = false;
};

struct ScatterChart {
  std::string title{};
  Axis x{};
  Axis y{};
  std::vector<ScatterSeries> series{};
  double width = 1180;
  double height = 420;
};

/// Returns the chart as one <svg> element. Points that cannot be shown (NaN, or 0 or less on a
/// logarithmic axis) are left out. Without any points, the chart says "no data".
[[nodiscard]] std::string scatter_chart_svg(const ScatterChart& chart);

}  // namespace precast::tools
