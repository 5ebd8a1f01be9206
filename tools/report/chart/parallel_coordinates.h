#pragma once

#include <string>
#include <vector>

#include "tools/report/chart/axis.h"

namespace precast::tools {

/// One vertical axis, of names (an arch, a method) or of numbers.
struct ParallelAxis {
  std::string label{};
  Scale scale = Scale::linear;
  /// Not empty: values are indices into this list.
  std::vector<std::string> names{};
};

struct ParallelLine {
  /// For the tooltip: the trial's id.
  std::string label{};
  /// One value per axis. NaN: the line ends there.
  std::vector<double> values{};
  /// Drawn on top and thicker: the best trial.
  bool emphasised = false;
};

/// Many trials of many settings: one line per trial, over one axis per setting. The last axis is
/// the result and determines the colour of the lines: bright for large values.
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
