#pragma once

#include <string>
#include <vector>

#include "tools/report/chart/axis.h"

namespace precast::tools {

struct LinePoint {
  double x = 0;
  /// NaN: a gap in the line.
  double y = 0;
};

struct LineSeries {
  std::string label{};
  /// In drawing order. A long series is reduced to at most four points per pixel of width,
  /// including its extremes.
  std::vector<LinePoint> points{};
  /// The colour's index; see series_class(). Lines that belong together may have the same colour.
  int colour = 0;
  bool dashed = false;
  /// Whether to draw a step line without dots, as for a resolution: each value stays until the next
  /// point.
  bool steps = false;
  /// One of many background lines: thin and pale, without dots (unless it is a single point) and
  /// not in the legend.
  bool faint = false;
  /// The lower and upper limits of a band around the line, such as an interval over seeds: one
  /// value for each point, or both empty.
  std::vector<double> low{};
  std::vector<double> high{};
};

struct LineChart {
  std::string title{};
  Axis x{};
  Axis y{};
  std::vector<LineSeries> series{};
  double width = 560;
  double height = 300;
};

/// Returns the chart as one <svg> element. Short series have dots with tooltips; a series of one
/// point is a dot. Without any points, the chart says "no data".
[[nodiscard]] std::string line_chart_svg(const LineChart& chart);

}  // namespace precast::tools
