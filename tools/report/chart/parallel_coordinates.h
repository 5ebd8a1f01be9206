#pragma once

#include <string>
#include <vector>

#include "tools/report/chart/axis.h"

namespace precast::tools {

/// One vertical axis. Of names (an arch, a method), or of numbers.
struct ParallelAxis {
  std::string label{};
  Scale scale = Scale::linear;
  /// Not empty: values are places in this list.
  std::vector<std::string> names{};
};

struct ParallelLine {
  /// For the tooltip: the trial's id.
  std::string label{};
  /// As many as axes. NaN: the line ends there.
  std::vector<double> values{};
  /// Drawn on top and thicker: the best trial.
  bool emphasised = false;
};

/// Many trials of many settings: a line each, over one axis a setting; the last axis is the result
/// and colours the lines, bright for large.
struct ParallelCoordinates {
  std::string title{};
  std::vector<ParallelAxis> axes{};
  std::vector<ParallelLine> lines{};
  double width = 1180;
  double height = 360;
};

/// The chart as one <svg> element; without lines or axes it says "no data".
[[nodiscard]] std::string parallel_coordinates_svg(const ParallelCoordinates& chart);

}  // namespace precast::tools
