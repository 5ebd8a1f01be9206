#include "tools/report/chart/scatter_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/report/chart/svg.h"

namespace precast::tools {
namespace {

constexpr double kRadius = 5, kLine = 13;

struct Box {
  double left, top, right, bottom;
  [[nodiscard]] bool overlaps(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

/// Finds positions where labels cover neither points nor other labels.
class Labels {
 public:
  explicit Labels(const Frame& frame) : frame_(frame) {}
  void keep_free(double x, double y) {
    taken_.push_back({x - kRadius, y - kRadius, x + kRadius, y + kRadius});
  }
  /// Draws the label to the right of its point, to the left, above or below. Returns an empty
  /// string if there is no room.
  std::string place_label(double x, double y, const std::string& label) {
    const double wide = text_width(label);
    const std::array<Box, 4> places = {{{x + 9, y - 8, x + 9 + wide, y - 8 + kLine},
                                        {x - 9 - wide, y - 8, x - 9, y - 8 + kLine},
                                        {x - wide / 2, y - 21, x + wide / 2, y - 21 + kLine},
                                        {x - wide / 2, y + 8, x + wide / 2, y + 8 + kLine}}};
    for (const Box& box : places) {
      if (box.left < frame_.left() || box.right > frame_.right() + 12 ||
          box.top < frame_.top() - 8 || box.bottom > frame_.bottom() ||
          std::ranges::any_of(taken_, [&](const Box& other) { return box.overlaps(other); }))
        continue;
      taken_.push_back(box);
      return fmt::format(
          "<text class=\"ink halo\" font-size=\"11\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
          box.left, box.top + 11, escaped(label));
    }
    return {};
  }

 private:
  const Frame& frame_;
  std::vector<Box> taken_;
};

std::string error_bar(const Frame& frame, const ScatterPoint& point) {
  if (!point.y_low || !point.y_high) return {};
  const double x = frame.x(point.x);
  const double low = frame.y(*point.y_low), high = frame.y(*point.y_high);
  if (std::isnan(x + low + high)) return {};
  return fmt::format(
      "<path class=\"thin\" d=\"M{0:.1f} {1:.1f}V{2:.1f}M{3:.1f} {1:.1f}h8M{3:.1f} {2:.1f}h8\"/>",
      x, low, high, x - 4);
}

std::string tooltip(const ScatterChart& chart, const ScatterSeries& series,
                    const ScatterPoint& point) {
  std::string text = series.label;
  if (!point.label.empty()) text += (text.empty() ? "" : ", ") + point.label;
  text += fmt::format("\n{}: {}\n{}: {}", chart.x.label, readable(point.x), chart.y.label,
                      readable(point.y));
  if (point.y_low && point.y_high)
    text += fmt::format(" ({} to {})", readable(*point.y_low), readable(*point.y_high));
  return text;
}

std::string drawn(const ScatterChart& chart, const Frame& frame, const ScatterSeries& series) {
  std::string out = fmt::format("<g class=\"{}\">", series_class(series.colour)), path;
  for (const ScatterPoint& point : series.points) {
    const double x = frame.x(point.x), y = frame.y(point.y);
    if (!std::isnan(x + y)) path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? 'M' : 'L', x, y);
  }
  if (series.joined && !path.empty())
    out += fmt::format("<path class=\"thin\" stroke-dasharray=\"{}\" d=\"{}\"/>",
                       series.mark == Mark::diamond ? "3 4" : "none", path);
  for (const ScatterPoint& point : series.points) {
    out += error_bar(frame, point);
    out += point_mark(frame.x(point.x), frame.y(point.y), series.mark, kRadius,
                      tooltip(chart, series, point));
  }
  return out + "</g>\n";
}

void add_extents(const ScatterChart& chart, Extent& xs, Extent& ys) {
  for (const ScatterSeries& series : chart.series) {
    for (const ScatterPoint& point : series.points) {
      if (!std::isfinite(point.x) || !std::isfinite(point.y)) continue;
      xs.add(point.x);
      ys.add(point.y);
      if (point.y_low) ys.add(*point.y_low);
      if (point.y_high) ys.add(*point.y_high);
    }
  }
}

std::vector<LegendEntry> legend_of(const ScatterChart& chart) {
  std::vector<LegendEntry> legend;
  for (const ScatterSeries& series : chart.series)
    legend.push_back({series.label, series.colour, series.mark});
  return legend;
}

}  // namespace

std::string scatter_chart_svg(const ScatterChart& chart) {
  Extent xs(chart.x.scale), ys(chart.y.scale);
  add_extents(chart, xs, ys);
  const Frame frame({chart.title, legend_of(chart)}, chart.x, xs, chart.y, ys, chart.width,
                    chart.height);
  std::string out = frame.head(xs.empty() || ys.empty());
  Labels labels(frame);
  const auto each_point = [&](auto action) {
    for (const ScatterSeries& series : chart.series) {
      for (const ScatterPoint& point : series.points) {
        const double x = frame.x(point.x), y = frame.y(point.y);
        if (!std::isnan(x + y)) action(x, y, point.label);
      }
    }
  };
  each_point([&](double x, double y, const std::string& /*label*/) { labels.keep_free(x, y); });
  for (const ScatterSeries& series : chart.series) out += drawn(chart, frame, series);
  each_point([&](double x, double y, const std::string& label) {
    if (!label.empty()) out += labels.place_label(x, y, label);
  });
  return out + "</svg>\n";
}

}  // namespace precast::tools
