#pragma once

#include <string>
#include <vector>

#include "tools/report/chart/axis.h"

namespace precast::tools {

/// One vertical axis, for names (such as models or methods) or for numbers.
struct ParallelAxis {
  std::string label{};
  Scale scale = Scale::linear;
  /// If not empty, values are indices into this list.
  std::vector<std::string> names{};
};

struct ParallelLine {
  /// The first line of the tooltip.
  std::string label{};
  /// One value per axis. NaN: a gap in the line.
  std::vector<double> values{};
  /// Whether to draw it on top and thicker, as for the best combination.
  bool emphasised = false;
};

/// Combinations of settings and their results: one line per combination, and one axis per setting.
/// The last axis is the result and determines the colour of the lines: bright for large values.
struct ParallelCoordinates {
  std::string title{};
  std::vector<ParallelAxis> axes{};
  std::vector<ParallelLine> lines{};
  double width = 1180;
  double height = 360;
};

/// Returns the chart as one <svg> element. Without lines or axes, it says "no data".
[[nodiscard]] std::string parallel_coordinates_svg(const ParallelCoordinates& chart);

}  // namespace precast::tools
