#include "tools/report/chart/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/report/chart/axis.h"
#include "tools/report/chart/svg.h"

namespace precast::tools {
namespace {

// In pixels.
constexpr double kTop = 46, kCellHeight = 34, kMinCell = 62, kEdge = 14, kBelow = 46, kScale = 92;

std::string text_of(const HeatMap& map, double value) {
  return map.digits < 0 || !std::isfinite(value) ? readable(value)
                                                 : fmt::format("{:.{}f}", value, map.digits);
}

double value_at(const HeatMap& map, std::size_t row, std::size_t column) {
  if (row >= map.values.size() || column >= map.values[row].size())
    return std::numeric_limits<double>::quiet_NaN();
  return map.values[row][column];
}

/// The position of the value between minimum (0) and maximum (1); NaN for a cell without a result.
double share_of(const Extent& extent, double value) {
  if (!std::isfinite(value) || extent.empty()) return std::numeric_limits<double>::quiet_NaN();
  return extent.max() > extent.min() ? (value - extent.min()) / (extent.max() - extent.min()) : 0.5;
}

std::string cell(const HeatMap& map, const Extent& extent, std::size_t row, std::size_t column,
                 double x, double y, double wide) {
  const double value = value_at(map, row, column);
  const double share = share_of(extent, value);
  const std::string tooltip = fmt::format("{} {}, {} {}: {}", map.y_label, map.rows[row],
                                          map.x_label, map.columns[column], text_of(map, value));
  return fmt::format(
      "<g><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
      "rx=\"2\" "
      "fill=\"{}\"{}/><text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" "
      "fill=\"{}\">{}</text></g>\n",
      escaped(tooltip), x + 1, y + 1, wide - 2, kCellHeight - 2, scale_colour(share),
      std::isnan(share) ? " fill-opacity=\".35\"" : "", x + wide / 2, y + kCellHeight / 2 + 4,
      std::isnan(share) ? "#808080" : scale_text_colour(share), escaped(text_of(map, value)));
}

std::string scale_bar(const HeatMap& map, const Extent& extent, double x, double top,
                      double bottom) {
  constexpr int kSteps = 24;
  const double height = (bottom - top) / kSteps;
  std::string out;
  for (int step = 0; step < kSteps; ++step)
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.2f}\" width=\"12\" height=\"{:.2f}\" fill=\"{}\"/>", x,
        bottom - height * (step + 1), height + 0.5, scale_colour((step + 0.5) / kSteps));
  const auto text = [&](double y, const std::string& words) {
    out += fmt::format("<text class=\"soft\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x + 18, y,
                       escaped(words));
  };
  text(top + 9, text_of(map, extent.max()));
  text(bottom, text_of(map, extent.min()));
  if (bottom - top > 50) text((top + bottom) / 2 + 4, map.value_label);
  return out;
}

/// The position of the cells.
struct Grid {
  double left, right, bottom;
  /// The width of a cell.
  double cell;
};

Grid lay_out(const HeatMap& map) {
  double room = 20, wide = kMinCell;
  for (const std::string& row : map.rows) room = std::max(room, text_width(row));
  for (const std::string& column : map.columns) wide = std::max(wide, text_width(column) + 14);
  const double left = kEdge + (map.y_label.empty() ? 0 : 20) + room + 8;
  return {.left = left,
          .right = left + wide * static_cast<double>(map.columns.size()),
          .bottom = kTop + kCellHeight * static_cast<double>(map.rows.size()),
          .cell = wide};
}

std::string drawn_row(const HeatMap& map, const Extent& extent, const Grid& grid, std::size_t row) {
  const double y = kTop + kCellHeight * static_cast<double>(row);
  std::string out =
      fmt::format("<text class=\"ink\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                  grid.left - 8, y + kCellHeight / 2 + 4, escaped(map.rows[row]));
  for (std::size_t column = 0; column < map.columns.size(); ++column)
    out += cell(map, extent, row, column, grid.left + grid.cell * static_cast<double>(column), y,
                grid.cell);
  return out;
}

/// The names of the columns and the titles of the axes.
std::string axis_texts(const HeatMap& map, const Grid& grid) {
  std::string out;
  for (std::size_t column = 0; column < map.columns.size(); ++column)
    out += fmt::format(
        "<text class=\"ink\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
        grid.left + grid.cell * (static_cast<double>(column) + 0.5), grid.bottom + 17,
        escaped(map.columns[column]));
  return out +
         fmt::format(
             "<text class=\"soft\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n"
             "<text class=\"soft\" transform=\"translate(20 {:.1f}) rotate(-90)\" "
             "text-anchor=\"middle\">{}</text>\n",
             (grid.left + grid.right) / 2, grid.bottom + 36, escaped(map.x_label),
             (kTop + grid.bottom) / 2, escaped(map.y_label));
}

}  // namespace

std::string heat_map_svg(const HeatMap& map) {
  Extent extent(Scale::linear);
  for (const auto& row : map.values)
    for (const double value : row) extent.add(value);
  const Grid grid = lay_out(map);
  const bool empty = extent.empty() || map.rows.empty() || map.columns.empty();
  const double width =
      std::max({grid.right + kScale + 14, 2 * kEdge + 1.2 * text_width(map.title), 240.0});
  std::string out = svg_head(map.title, width, grid.bottom + kBelow);
  if (empty)
    return out +
           fmt::format("<text class=\"soft empty\" x=\"{}\" y=\"{}\">no data</text>\n</svg>\n",
                       kEdge, kTop + 12);
  for (std::size_t row = 0; row < map.rows.size(); ++row) out += drawn_row(map, extent, grid, row);
  return out + axis_texts(map, grid) +
         scale_bar(map, extent, grid.right + 14, kTop + 1, grid.bottom - 1) + "</svg>\n";
}

}  // namespace precast::tools
