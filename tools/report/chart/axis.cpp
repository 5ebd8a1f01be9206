#include "tools/report/chart/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/report/chart/svg.h"

namespace precast::tools {
namespace {

/// Formats `value` with as many digits as `step` needs, so that all labels of an axis look alike.
std::string tick_text(double value, double step) {
  const double magnitude = std::max(std::abs(value), step);
  if (std::abs(value) < step / 1000) return "0";
  if (magnitude >= 1e6) return fmt::format("{}M", readable(value / 1e6));
  if (magnitude < 1e-3) return fmt::format("{:.3g}", value);
  // A step such as 2.5 needs one more decimal digit than its power of ten.
  int digits = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
  const double scaled = step * std::pow(10.0, digits);
  if (std::abs(scaled - std::round(scaled)) > 1e-6) ++digits;
  return digits == 0 ? readable(value) : fmt::format("{:.{}f}", value, digits);
}

}  // namespace

void Extent::add(double value) {
  if (!std::isfinite(value) || (scale_ == Scale::logarithmic && value <= 0)) return;
  const bool first = empty();
  min_ = first ? value : std::min(min_, value);
  max_ = first ? value : std::max(max_, value);
}

double nice_step(double span, int ticks) {
  const double raw = span / std::max(1, ticks);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0})
    if (raw <= factor * power * (1 + 1e-9)) return factor * power;
  return 10 * power;
}

AxisMap::AxisMap(const Axis& axis, const Extent& extent, double from_px, double to_px, int ticks)
    : scale_(axis.scale), from_px_(from_px), to_px_(to_px) {
  const bool log = scale_ == Scale::logarithmic;
  min_ = axis.min.value_or(extent.empty() ? (log ? 1 : 0) : extent.min());
  max_ = axis.max.value_or(extent.empty() ? (log ? 10 : 1) : extent.max());
  log ? place_logarithmic(axis, ticks) : place_linear(axis, ticks);
}

void AxisMap::place_linear(const Axis& axis, int ticks) {
  // If there is only one value, or the values are too close together for ticks, adds room.
  const double noise = 1e-9 * std::max(std::abs(min_), std::abs(max_));
  if (!(max_ - min_ > noise)) {
    const double room = axis.integer ? 1 : std::max(std::abs(max_) * 0.1, 1e-6);
    if (!axis.min) min_ -= min_ > 0 && min_ < room ? min_ : room;
    if (!axis.max || max_ <= min_) max_ = std::max(max_, min_) + room;
  }
  double step = nice_step(max_ - min_, ticks);
  if (axis.integer) step = std::max(1.0, std::round(step));
  if (!axis.min) min_ = step * std::floor(min_ / step + 1e-9);
  // An axis of counts ends at the largest value: at 18 epochs, not at 20.
  if (!axis.max && !axis.integer) max_ = step * std::ceil(max_ / step - 1e-9);
  for (double i = std::ceil(min_ / step - 1e-9); i * step <= max_ + step * 1e-9; ++i)
    ticks_.push_back({i * step, tick_text(i * step, step)});
}

void AxisMap::place_logarithmic(const Axis& axis, int ticks) {
  min_ = std::max(min_, std::numeric_limits<double>::min());
  max_ = std::max(max_, min_);
  const auto power = [](double exponent) { return std::pow(10.0, exponent); };
  if (std::log10(max_) - std::log10(min_) < 0.3) {
    if (!axis.min) min_ /= 1.5;
    if (!axis.max || max_ <= min_) max_ *= 1.5;
  }
  const double decades = std::log10(max_) - std::log10(min_);
  const double first = std::floor(std::log10(min_)), last = std::ceil(std::log10(max_));
  const double every = std::max(1.0, std::ceil(decades / std::max(1, ticks)));
  const bool dense = decades < ticks / 2.5;
  for (double exponent = first; exponent <= last; exponent += every) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && !dense) break;
      ticks_.push_back({factor * power(exponent), readable(factor * power(exponent))});
    }
  }
  end_at_ticks(axis);
}

void AxisMap::end_at_ticks(const Axis& axis) {
  const auto before = [&](const Tick& tick) { return tick.value <= min_ * (1 + 1e-9); };
  const auto behind = [&](const Tick& tick) { return tick.value >= max_ * (1 - 1e-9); };
  const auto low = std::find_if(ticks_.rbegin(), ticks_.rend(), before);
  if (!axis.min && low != ticks_.rend()) min_ = low->value;
  const auto high = std::find_if(ticks_.begin(), ticks_.end(), behind);
  if (!axis.max && high != ticks_.end()) max_ = high->value;
  std::erase_if(ticks_, [&](const Tick& tick) {
    return tick.value < min_ * (1 - 1e-9) || tick.value > max_ * (1 + 1e-9);
  });
}

double AxisMap::at(double value) const {
  const bool log = scale_ == Scale::logarithmic;
  if (std::isnan(value) || (log && value <= 0)) return std::numeric_limits<double>::quiet_NaN();
  const double share = log ? (std::log(value) - std::log(min_)) / (std::log(max_) - std::log(min_))
                           : (value - min_) / (max_ - min_);
  return from_px_ + std::clamp(share, 0.0, 1.0) * (to_px_ - from_px_);
}

}  // namespace precast::tools
