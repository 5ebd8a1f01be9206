#pragma once

#include <optional>
#include <string>
#include <vector>

namespace precast::tools {

enum class Scale { linear, logarithmic };

/// The settings of an axis. An end that is not set is derived from the data.
struct Axis {
  std::string label{};
  Scale scale = Scale::linear;
  std::optional<double> min{};
  std::optional<double> max{};
  /// Whether the values are counts (epochs, steps), so that only whole numbers have ticks.
  bool integer = false;
};

/// The range of the finite values that an axis must show. A logarithmic axis ignores values of 0 or
/// less.
class Extent {
 public:
  explicit Extent(Scale scale) : scale_(scale) {}
  void add(double value);
  [[nodiscard]] bool empty() const { return !(min_ <= max_); }
  [[nodiscard]] double min() const { return min_; }
  [[nodiscard]] double max() const { return max_; }

 private:
  Scale scale_;
  double min_ = 1;
  double max_ = 0;
};

struct Tick {
  double value = 0;
  std::string text{};
};

/// Chooses the ends and the ticks of an axis, and maps values to pixels.
class AxisMap {
 public:
  /// The axis ends at `axis.min` and `axis.max` if they are set, otherwise at the ticks that
  /// enclose the data; an integer axis ends at the largest value. @param from_px, to_px positions
  /// of the minimum and the maximum. @param ticks approximate number of ticks.
  AxisMap(const Axis& axis, const Extent& extent, double from_px, double to_px, int ticks);
  /// Returns the position in pixels; NaN if the value cannot be shown (NaN, or 0 or less on a
  /// logarithmic axis). A value outside the axis gets the position of the nearer end.
  [[nodiscard]] double at(double value) const;
  [[nodiscard]] const std::vector<Tick>& ticks() const { return ticks_; }
  [[nodiscard]] double min() const { return min_; }
  [[nodiscard]] double max() const { return max_; }

 private:
  void place_linear(const Axis& axis, int ticks);
  void place_logarithmic(const Axis& axis, int ticks);
  /// Moves the ends to the nearest ticks that enclose the data.
  void end_at_ticks(const Axis& axis);

  Scale scale_;
  double from_px_;
  double to_px_;
  double min_ = 0;
  double max_ = 1;
  std::vector<Tick> ticks_;
};

/// Returns the distance of ticks, 1, 2, 2.5 or 5 times a power of ten, for about `ticks` in `span`.
[[nodiscard]] double nice_step(double span, int ticks);

}  // namespace precast::tools
