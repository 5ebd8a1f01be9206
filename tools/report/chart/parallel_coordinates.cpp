#include "tools/report/chart/parallel_coordinates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/report/chart/svg.h"

namespace precast::tools {
namespace {

// In pixels.
constexpr double kTop = 74, kBottom = 22, kSide = 70;

struct Placed {
  double x;
  AxisMap map;
};

AxisMap map_axis(const ParallelCoordinates& chart, std::size_t index) {
  const ParallelAxis& axis = chart.axes[index];
  const double bottom = chart.height - kBottom;
  Extent extent(axis.scale);
  for (const ParallelLine& line : chart.lines)
    if (index < line.values.size()) extent.add(line.values[index]);
  if (axis.names.empty()) return {{.scale = axis.scale}, extent, bottom, kTop, 6};
  const double max = static_cast<double>(axis.names.size()) - 1;
  // If there is only one name, it is in the middle of the axis.
  const Axis places{.min = max > 0 ? 0 : -1, .max = max > 0 ? max : 1};
  return {places, extent, bottom, kTop, 6};
}

std::string axis_text(double x, double y, bool last, const std::string& text) {
  return fmt::format(
      "<text class=\"soft halo\" font-size=\"11\" x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n",
      last ? x + 7 : x - 7, y + 4, last ? "" : " text-anchor=\"end\"", escaped(text));
}

std::string drawn_axis(const ParallelAxis& axis, const Placed& placed, bool last, double bottom) {
  std::string out = fmt::format(
      "<path class=\"axis\" d=\"M{0:.1f} {1}V{2:.1f}\"/><text class=\"ink\" x=\"{0:.1f}\" "
      "y=\"{3}\" "
      "text-anchor=\"middle\">{4}</text>\n",
      placed.x, kTop, bottom, kTop - 14, escaped(axis.label));
  for (std::size_t i = 0; i < axis.names.size(); ++i)
    out += axis_text(placed.x, placed.map.at(static_cast<double>(i)), last, axis.names[i]);
  if (!axis.names.empty()) return out;
  for (const Tick& tick : placed.map.ticks())
    out += axis_text(placed.x, placed.map.at(tick.value), last, tick.text);
  return out;
}

/// Returns curves that meet the axes horizontally, so that crossing lines can be followed.
std::string path_of(const std::vector<Placed>& axes, const ParallelLine& line) {
  std::string path;
  double last_x = 0, last_y = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = 0; i < std::min(axes.size(), line.values.size()); ++i) {
    const double x = axes[i].x, y = axes[i].map.at(line.values[i]);
    if (!std::isnan(y) && std::isnan(last_y)) path += fmt::format("M{:.1f} {:.1f}", x, y);
    if (!std::isnan(y) && !std::isnan(last_y)) {
      const double middle = (last_x + x) / 2;
      path += fmt::format("C{0:.1f} {1:.1f} {0:.1f} {2:.1f} {3:.1f} {2:.1f}", middle, last_y, y, x);
    }
    last_x = x;
    last_y = y;
  }
  return path;
}

std::string tooltip(const ParallelCoordinates& chart, const ParallelLine& line) {
  std::string text = line.label;
  for (std::size_t i = 0; i < std::min(chart.axes.size(), line.values.size()); ++i) {
    const ParallelAxis& axis = chart.axes[i];
    const double value = line.values[i];
    const bool named = value >= 0 && value < static_cast<double>(axis.names.size());
    text += fmt::format("\n{}: {}", axis.label,
                        named ? axis.names[static_cast<std::size_t>(value)] : readable(value));
  }
  return text;
}

/// The position of the line's result: 0 for the minimum, 1 for the maximum; NaN without a result.
double share_of(const std::vector<Placed>& axes, const ParallelLine& line, double bottom) {
  if (line.values.size() < axes.size()) return std::numeric_limits<double>::quiet_NaN();
  return (bottom - axes.back().map.at(line.values.back())) / (bottom - kTop);
}

std::vector<Placed> place_axes(const ParallelCoordinates& chart) {
  const double between = chart.axes.size() < 2 ? 0
                                               : (chart.width - 2 * kSide) /
                                                     static_cast<double>(chart.axes.size() - 1);
  std::vector<Placed> axes;
  for (std::size_t i = 0; i < chart.axes.size(); ++i)
    axes.push_back({kSide + between * static_cast<double>(i), map_axis(chart, i)});
  return axes;
}

/// Returns an empty string if none of the line's values can be shown.
std::string drawn_line(const ParallelCoordinates& chart, const std::vector<Placed>& axes,
                       const ParallelLine& line) {
  const std::string path = path_of(axes, line);
  if (path.empty()) return {};
  // Leaves out the ends of the colour scale, which are invisible on a dark or white background.
  const double share = 0.2 + 0.66 * share_of(axes, line, chart.height - kBottom);
  return fmt::format(
      "<path fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" opacity=\"{}\" "
      "d=\"{}\"><title>{}</title></path>\n",
      scale_colour(share), line.emphasised ? 4 : 1.8, line.emphasised ? 1 : 0.75, path,
      escaped(tooltip(chart, line)));
}

}  // namespace

std::string parallel_coordinates_svg(const ParallelCoordinates& chart) {
  std::string out = svg_head(chart.title, chart.width, chart.height);
  if (chart.axes.empty() || chart.lines.empty())
    return out + fmt::format(
                     "<text class=\"soft empty\" x=\"14\" y=\"{}\">no data</text>\n</svg>\n", kTop);
  const double bottom = chart.height - kBottom;
  const std::vector<Placed> axes = place_axes(chart);
  // Emphasised lines are on top.
  std::vector<const ParallelLine*> order;
  for (const ParallelLine& line : chart.lines) order.push_back(&line);
  std::ranges::stable_sort(order, {}, &ParallelLine::emphasised);
  for (const ParallelLine* line : order) out += drawn_line(chart, axes, *line);
  for (std::size_t i = 0; i < axes.size(); ++i)
    out += drawn_axis(chart.axes[i], axes[i], i + 1 == axes.size(), bottom);
  return out + "</svg>\n";
}

}  // namespace precast::tools
