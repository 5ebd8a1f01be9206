#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/report/chart/axis.h"

namespace precast::tools {

/// The symbol of a series, in the plot and in the legend.
enum class Mark { line, dashed, dot, diamond };

struct LegendEntry {
  std::string label;
  int colour = 0;
  Mark mark = Mark::line;
};

/// Title, legend, grid and axes of a line chart or a scatter chart.
class Frame {
 public:
  struct Text {
    std::string title;
    /// Entries of the legend, which is drawn only if there are at least two.
    std::vector<LegendEntry> legend{};
  };
  /// @param height increased if a long legend would leave too little room for the plot.
  Frame(const Text& text, const Axis& x, const Extent& xs, const Axis& y, const Extent& ys,
        double width, double height);

  /// The pixel position of a value. NaN if it cannot be shown.
  [[nodiscard]] double x(double value) const { return x_.at(value); }
  [[nodiscard]] double y(double value) const { return y_.at(value); }
  [[nodiscard]] double left() const { return left_; }
  [[nodiscard]] double right() const { return right_; }
  [[nodiscard]] double top() const { return top_; }
  [[nodiscard]] double bottom() const { return bottom_; }
  /// Returns the SVG text from <svg> to the axes, with the words "no data" if `empty`. The caller
  /// appends the series and "</svg>".
  [[nodiscard]] std::string head(bool empty) const;

 private:
  struct Placed {
    LegendEntry entry;
    double x, y;
  };

  static std::vector<Placed> lay_out_legend(const std::vector<LegendEntry>& legend, double width);
  [[nodiscard]] std::string legend() const;
  [[nodiscard]] std::string axes() const;
  [[nodiscard]] std::string axis_labels() const;

  std::string title_;
  std::string x_label_;
  std::string y_label_;
  double width_;
  std::vector<Placed> legend_;
  double top_;
  double height_;
  double bottom_;
  double left_;
  double right_;
  AxisMap y_;
  AxisMap x_;
};

/// Draws a point as a dot or a diamond, with a tooltip. Returns an empty string if a coordinate is
/// NaN.
[[nodiscard]] std::string point_mark(double x, double y, Mark mark, double radius,
                                     const std::string& tooltip);

}  // namespace precast::tools
