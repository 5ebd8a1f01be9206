#include "tools/report/chart/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "tools/report/chart/frame.h"
#include "tools/report/chart/svg.h"

namespace precast::tools {
namespace {

/// A series of at most this many points has a dot at each point.
constexpr std::size_t kMaxDots = 60;

/// Appends the first, lowest, highest and last point of a column of pixels to `out`.
void keep_extremes(std::span<const LinePoint> column, std::vector<LinePoint>& out) {
  // NaN is never an extreme.
  const auto lowest =
      std::min_element(column.begin(), column.end(), [](const LinePoint& a, const LinePoint& b) {
        return !std::isnan(a.y) && (std::isnan(b.y) || a.y < b.y);
      });
  const auto highest =
      std::max_element(column.begin(), column.end(), [](const LinePoint& a, const LinePoint& b) {
        return !std::isnan(b.y) && (std::isnan(a.y) || a.y < b.y);
      });
  std::vector kept = {column.begin(), lowest, highest, column.end() - 1};
  std::ranges::sort(kept);
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  for (const auto& place : kept) out.push_back(*place);
}

/// Keeps at most four points per column of pixels.
std::vector<LinePoint> thinned(const std::vector<LinePoint>& points, double width) {
  const auto columns = static_cast<std::size_t>(width);
  if (points.size() <= 4 * columns) return points;
  std::vector<LinePoint> out;
  for (std::size_t column = 0; column < columns; ++column) {
    const std::size_t begin = column * points.size() / columns;
    const std::size_t end = (column + 1) * points.size() / columns;
    keep_extremes(std::span(points).subspan(begin, end - begin), out);
  }
  return out;
}

std::string path_of(const Frame& frame, const LineSeries& series,
                    const std::vector<LinePoint>& points) {
  std::string path;
  bool gap = true;
  double last = 0;
  for (const LinePoint& point : points) {
    const double x = frame.x(point.x), y = frame.y(point.y);
    if (std::isnan(x) || std::isnan(y)) {
      gap = true;
      continue;
    }
    if (!gap && series.steps) path += fmt::format("L{:.1f} {:.1f}", x, last);
    path += fmt::format("{}{:.1f} {:.1f}", gap ? 'M' : 'L', x, y);
    gap = false;
    last = y;
  }
  return path;
}

std::string band_of(const Frame& frame, const LineSeries& series) {
  if (series.low.size() != series.points.size() || series.high.size() != series.points.size())
    return {};
  std::string there, back;
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    const double x = frame.x(series.points[i].x);
    const double low = frame.y(series.low[i]), high = frame.y(series.high[i]);
    if (std::isnan(x + low + high)) continue;
    there += fmt::format("{}{:.1f} {:.1f}", there.empty() ? 'M' : 'L', x, high);
    back = fmt::format("L{:.1f} {:.1f}{}", x, low, back);
  }
  return there.empty() ? "" : fmt::format("<path class=\"band\" d=\"{}{}z\"/>", there, back);
}

std::string tooltip(const LineChart& chart, const LineSeries& series, const LinePoint& point) {
  return fmt::format("{}{}{} {}: {}", series.label, series.label.empty() ? "" : ", ", chart.x.label,
                     readable(point.x), readable(point.y));
}

std::string drawn(const LineChart& chart, const Frame& frame, const LineSeries& series) {
  const auto points = thinned(series.points, frame.right() - frame.left());
  std::string out = fmt::format("<g class=\"{}\">", series_class(series.colour));
  out += band_of(frame, series);
  const std::string path = path_of(frame, series, points);
  if (!path.empty()) {
    out +=
        fmt::format("<path class=\"{}\"{} d=\"{}\"><title>{}</title></path>\n",
                    series.faint               ? "line faint"
                    : points.size() > kMaxDots ? "line noisy"
                                               : "line",
                    series.dashed ? " stroke-dasharray=\"6 4\"" : "", path, escaped(series.label));
  }
  const bool alone = points.size() == 1;
  if (points.size() <= kMaxDots && !series.steps && (!series.faint || alone)) {
    const double radius = alone && !series.faint ? 4 : 2.8;
    for (const LinePoint& point : points)
      out += point_mark(frame.x(point.x), frame.y(point.y), Mark::dot, radius,
                        tooltip(chart, series, point));
  }
  return out + "</g>\n";
}

}  // namespace

std::string line_chart_svg(const LineChart& chart) {
  Extent xs(chart.x.scale), ys(chart.y.scale);
  std::vector<LegendEntry> legend;
  for (const LineSeries& series : chart.series) {
    if (!series.faint)
      legend.push_back({series.label, series.colour, series.dashed ? Mark::dashed : Mark::line});
    for (const LinePoint& point : series.points) {
      if (!std::isfinite(point.y)) continue;
      xs.add(point.x);
      ys.add(point.y);
    }
    for (const double value : series.low) ys.add(value);
    for (const double value : series.high) ys.add(value);
  }
  const Frame frame({chart.title, legend}, chart.x, xs, chart.y, ys, chart.width, chart.height);
  std::string out = frame.head(xs.empty() || ys.empty());
  for (const LineSeries& series : chart.series) out += drawn(chart, frame, series);
  return out + "</svg>\n";
}

}  // namespace precast::tools
