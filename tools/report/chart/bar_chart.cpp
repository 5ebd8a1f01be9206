#include "tools/report/chart/bar_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/report/chart/frame.h"
#include "tools/report/chart/svg.h"

namespace precast::tools {
namespace {

// In pixels.
constexpr double kTop = 44, kRow = 32, kBar = 20, kBelow = 44, kEdge = 14;
constexpr double kMaxLabelWidthPx = 260;

template <typename Rows>
double label_room(const Rows& rows) {
  double room = 60;
  for (const auto& row : rows) room = std::max(room, text_width(row.label));
  return kEdge + std::min(room, kMaxLabelWidthPx) + 10;
}

std::string row_label(const std::string& label, double right, double y) {
  return fmt::format(
      "<text class=\"ink\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", right - 8,
      y + 14, escaped(label));
}

std::string no_data(double width, double y) {
  return fmt::format(
      "<text class=\"soft empty\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">no "
      "data</text>\n",
      width / 2, y);
}

std::string value_text(const BarChart& chart, const Bar& bar) {
  const std::string unit = chart.unit.empty() ? "" : " " + chart.unit;
  return readable(bar.value) + unit + (bar.note.empty() ? "" : ", " + bar.note);
}

AxisMap value_axis(const BarChart& chart, double left, double right) {
  Extent extent(chart.scale);
  for (const Bar& bar : chart.bars) extent.add(bar.value);
  Axis axis{.label = chart.unit, .scale = chart.scale};
  if (chart.scale == Scale::linear) axis.min = 0;
  if (chart.scale == Scale::logarithmic && !extent.empty())
    axis.min = std::pow(10.0, std::floor(std::log10(extent.min()) - 0.3));
  return {axis, extent, left, right, std::max(2, static_cast<int>((right - left) / 90))};
}

std::string axis_lines(const BarChart& chart, const AxisMap& axis, double bottom, double middle) {
  std::string out;
  for (const Tick& tick : axis.ticks()) {
    out += fmt::format(
        "<path class=\"grid\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/><text class=\"soft\" x=\"{0:.1f}\" "
        "y=\"{3:.1f}\" text-anchor=\"middle\">{4}</text>\n",
        axis.at(tick.value), kTop, bottom, bottom + 16, escaped(tick.text));
  }
  out += fmt::format(
      "<text class=\"soft\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}{}</text>\n", middle,
      bottom + 34, escaped(chart.unit), chart.scale == Scale::logarithmic ? " (logarithmic)" : "");
  return out;
}

double total(const ShareChart::Row& row) {
  double sum = 0;
  for (const double value : row.values) sum += value > 0 && std::isfinite(value) ? value : 0;
  return sum;
}

/// Draws the shares of one row. If a share is too narrow for its text, only the tooltip shows it.
std::string share_row(const ShareChart& chart, const ShareChart::Row& row, double left,
                      double right, double y) {
  const double total_value = total(row);
  if (!(total_value > 0)) return no_data(left + right, y + 14);
  std::string out;
  double x = left;
  for (std::size_t part = 0; part < std::min(chart.parts.size(), row.values.size()); ++part) {
    const double value = row.values[part];
    if (!(value > 0) || !std::isfinite(value)) continue;
    const double share = value / total_value, wide = share * (right - left);
    const std::string percent = fmt::format("{:.{}f} %", 100 * share, share < 0.0995 ? 1 : 0);
    out += fmt::format(
        "<g class=\"{}\"><rect class=\"fill\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"{}\"><title>{}: {}</title></rect></g>",
        series_class(static_cast<int>(part)), x, y, wide, kBar, escaped(chart.parts[part]),
        percent);
    if (wide > text_width(percent) + 8)
      out += fmt::format(
          "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" class=\"paper\">{}</text>\n",
          x + wide / 2, y + 14, percent);
    x += wide;
  }
  return out;
}

std::string parts_legend(const std::vector<std::string>& parts) {
  std::string out;
  double x = kEdge;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    out += fmt::format(
        "<g class=\"{}\"><rect class=\"fill\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" "
        "rx=\"2\"/></g><text class=\"ink halo\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        series_class(static_cast<int>(part)), x, kTop - 4, x + 18, kTop + 6, escaped(parts[part]));
    x += 18 + text_width(parts[part]) + 16;
  }
  return out;
}

/// Draws a bar with its label on the left and its value on the right.
std::string drawn_bar(const BarChart& chart, const Bar& bar, const AxisMap& axis, double left,
                      double y) {
  const double end = std::isfinite(bar.value) ? axis.at(bar.value) : left;
  const double wide = std::isnan(end) ? 0 : std::max(0.0, end - left);
  return row_label(bar.label, left, y) +
         fmt::format(
             "<g class=\"{}\"><rect class=\"fill\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
             "height=\"{}\" rx=\"2\"/></g><text class=\"ink halo\" x=\"{:.1f}\" "
             "y=\"{:.1f}\">{}</text>\n",
             series_class(bar.colour), left, y, wide, kBar, left + wide + 6, y + 14,
             escaped(value_text(chart, bar)));
}

}  // namespace

std::string bar_chart_svg(const BarChart& chart) {
  double behind = 0;
  for (const Bar& bar : chart.bars) behind = std::max(behind, text_width(value_text(chart, bar)));
  const double left = label_room(chart.bars);
  const double right = std::max(left + 100, chart.width - kEdge - behind - 6);
  const double bottom =
      kTop + kRow * static_cast<double>(std::max<std::size_t>(1, chart.bars.size()));
  const AxisMap axis = value_axis(chart, left, right);
  std::string out = svg_head(chart.title, chart.width, bottom + kBelow) +
                    axis_lines(chart, axis, bottom, (left + right) / 2);
  if (chart.bars.empty()) out += no_data(chart.width, kTop + 20);
  for (std::size_t i = 0; i < chart.bars.size(); ++i) {
    const double y = kTop + kRow * static_cast<double>(i) + (kRow - kBar) / 2;
    out += drawn_bar(chart, chart.bars[i], axis, left, y);
  }
  return out + "</svg>\n";
}

std::string share_chart_svg(const ShareChart& chart) {
  const double left = label_room(chart.rows), right = chart.width - kEdge;
  double y = kTop + 24;
  const double bottom = y + kRow * static_cast<double>(std::max<std::size_t>(1, chart.rows.size()));
  std::string out = svg_head(chart.title, chart.width, bottom + 10);
  out += parts_legend(chart.parts);
  if (chart.rows.empty()) out += no_data(chart.width, y + 14);
  for (const ShareChart::Row& row : chart.rows) {
    out += row_label(row.label, left, y);
    out += share_row(chart, row, left, right, y);
    y += kRow;
  }
  return out + "</svg>\n";
}

}  // namespace precast::tools
