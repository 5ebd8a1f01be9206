#pragma once

#include <optional>
#include <string>
#include <vector>

namespace precast::tools {

enum class Scale { linear, logarithmic };

/// The properties of an axis that a caller sets; the others are derived from the data.
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

/// An axis with its ends and ticks: maps values to pixels.
class AxisMap {
 public:
  /// The ends are those of `axis` if given, otherwise the ticks around the data; an axis of whole
  /// numbers ends at the largest value. @param from_px, to_px positions of the minimum and the
  /// maximum. @param ticks approximate number of ticks.
  AxisMap(const Axis& axis, const Extent& extent, double from_px, double to_px, int ticks);
  /// @return a pixel; NaN for a value that cannot be shown (not a number, or not above 0 on a
  /// logarithmic axis). A value past an end is drawn at that end.
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

/// The step of 1, 2, 2.5 or 5 times a power of ten that makes about `ticks` ticks over `span`.
[[nodiscard]] double nice_step(double span, int ticks);

}  // namespace precast::tools
