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
  /// In drawing order. Long series are reduced to the number of points that the width can show;
  /// extremes are kept.
  std::vector<LinePoint> points{};
  /// The colour's index; see series_class(). Lines that belong together may have the same colour.
  int colour = 0;
  bool dashed = false;
  /// Whether the line keeps each value until the next point, as for a resolution; drawn without
  /// dots.
  bool steps = false;
  /// One of many background lines: thin and pale, without dots and not in the legend.
  bool faint = false;
  /// A band around the line (an interval over seeds): its lower and upper ends at the same x as
  /// `points`; both empty, or as long as `points`.
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

/// The chart as one <svg> element. Short series have dots with tooltips; a series of one point is a
/// dot. Without any points, the chart says "no data".
[[nodiscard]] std::string line_chart_svg(const LineChart& chart);

}  // namespace precast::tools
