#include "tools/report/chart/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/report/chart/svg.h"

namespace precast::tools {
namespace {

// In pixels.
constexpr double kTitle = 34, kLegendRow = 20, kSwatch = 22, kBelow = 42, kRight = 18, kEdge = 14;
constexpr double kBetweenTicks = 44;
/// The minimum height of the plot area.
constexpr double kMinPlot = 180;

double widest(const std::vector<Tick>& ticks) {
  double width = 0;
  for (const Tick& tick : ticks) width = std::max(width, text_width(tick.text));
  return width;
}

std::string swatch(const LegendEntry& entry, double x, double y) {
  if (entry.mark == Mark::line || entry.mark == Mark::dashed)
    return fmt::format("<path class=\"line\"{} d=\"M{:.1f} {:.1f}h16\"/>",
                       entry.mark == Mark::dashed ? " stroke-dasharray=\"5 4\"" : "", x, y);
  return point_mark(x + 8, y, entry.mark, 4.5, "");
}

}  // namespace

std::string point_mark(double x, double y, Mark mark, double radius, const std::string& tooltip) {
  if (std::isnan(x) || std::isnan(y)) return {};
  const std::string title =
      tooltip.empty() ? "" : fmt::format("<title>{}</title>", escaped(tooltip));
  if (mark == Mark::diamond) {
    const double r = radius * 1.25;
    return fmt::format(
        "<path class=\"hollow\" d=\"M{:.1f} {:.1f}l{r:.1f} {r:.1f}l-{r:.1f} {r:.1f}l-{r:.1f} "
        "-{r:.1f}z\">{}</path>\n",
        x, y - r, title, fmt::arg("r", r));
  }
  return fmt::format(
      "<circle class=\"fill\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\">{}</circle>\n", x, y, radius,
      title);
}

Frame::Frame(const Text& text, const Axis& x, const Extent& xs, const Axis& y, const Extent& ys,
             double width, double height)
    : title_(text.title),
      x_label_(x.label),
      y_label_(y.label),
      width_(width),
      legend_(lay_out_legend(text.legend, width)),
      top_(legend_.empty() ? kTitle + 10 : legend_.back().y + 18),
      height_(std::max(height, top_ + kMinPlot + kBelow)),
      bottom_(height_ - kBelow),
      left_(0),
      right_(width - kRight),
      y_(y, ys, bottom_, top_, std::max(2, static_cast<int>((bottom_ - top_) / kBetweenTicks))),
      x_(x, xs, 0, 1, 2) {
  left_ = 16 + widest(y_.ticks()) + (y_label_.empty() ? 0 : 18);
  // The number of labels that fit depends on their width, which depends on the ticks. A trial axis
  // gives the width.
  const double room = std::max(40.0, right_ - left_);
  const AxisMap trial(x, xs, left_, right_, static_cast<int>(room / 70));
  right_ = width - std::max(kRight, widest(trial.ticks()) / 2 + 8);
  x_ = AxisMap(x, xs, left_, right_,
               std::max(2, static_cast<int>(room / (widest(trial.ticks()) + 34))));
}

std::vector<Frame::Placed> Frame::lay_out_legend(const std::vector<LegendEntry>& legend,
                                                 double width) {
  std::vector<Placed> placed;
  if (legend.size() < 2) return placed;
  double x = kEdge, y = kTitle + 6;
  for (const LegendEntry& entry : legend) {
    const double wide = kSwatch + text_width(entry.label) + 14;
    if (x > kEdge && x + wide > width - kEdge) {
      x = kEdge;
      y += kLegendRow;
    }
    placed.push_back({entry, x, y});
    x += wide;
  }
  return placed;
}

std::string Frame::legend() const {
  std::string out;
  for (const Placed& placed : legend_) {
    out += fmt::format(
        "<g class=\"{}\">{}</g><text class=\"ink\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        series_class(placed.entry.colour), swatch(placed.entry, placed.x, placed.y),
        placed.x + kSwatch, placed.y + 4, escaped(placed.entry.label));
  }
  return out;
}

std::string Frame::head(bool empty) const {
  std::string out = svg_head(title_, width_, height_) + legend() + axes() + axis_labels();
  if (empty)
    out += fmt::format(
        "<text class=\"soft empty\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">no "
        "data</text>\n",
        (left_ + right_) / 2, (top_ + bottom_) / 2);
  return out;
}

std::string Frame::axes() const {
  std::string out;
  for (const Tick& tick : y_.ticks()) {
    const double at = y_.at(tick.value);
    out += fmt::format(
        "<path class=\"grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/><text class=\"soft\" x=\"{:.1f}\" "
        "y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        left_, at, right_, left_ - 7, at + 4, escaped(tick.text));
  }
  for (const Tick& tick : x_.ticks()) {
    const double at = x_.at(tick.value);
    out += fmt::format(
        "<path class=\"axis\" d=\"M{0:.1f} {1:.1f}v4\"/><text class=\"soft\" x=\"{0:.1f}\" "
        "y=\"{2:.1f}\" text-anchor=\"middle\">{3}</text>\n",
        at, bottom_, bottom_ + 17, escaped(tick.text));
  }
  return out + fmt::format("<path class=\"axis\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", left_, bottom_,
                           right_);
}

std::string Frame::axis_labels() const {
  std::string out;
  if (!x_label_.empty())
    out += fmt::format(
        "<text class=\"soft\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
        (left_ + right_) / 2, bottom_ + 34, escaped(x_label_));
  if (!y_label_.empty())
    out += fmt::format(
        "<text class=\"soft\" transform=\"translate(17 {:.1f}) rotate(-90)\" "
        "text-anchor=\"middle\">{}</text>\n",
        (top_ + bottom_) / 2, escaped(y_label_));
  return out;
}

}  // namespace precast::tools
