#include "recipes/schedules/one_cycle.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "framework/core/error.h"

namespace precast::recipes {
namespace {

/// Half a cosine from `from` at share 0 to `to` at share 1.
double half_cosine(double from, double to, double share) {
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * share));
}

class OneCycle final : public Schedule {
 public:
  explicit OneCycle(const ScheduleOptions& options)
      : first_(options.lr / options.div_factor),
        peak_(options.lr),
        last_(first_ / options.final_div_factor),
        pct_start_(options.pct_start),
        epochs_(options.epochs) {}

  [[nodiscard]] double lr(std::int64_t epoch) const override {
    const auto end = static_cast<double>(epochs_);
    return rate(static_cast<double>(epoch), pct_start_ * end, end);
  }

  [[nodiscard]] double step_lr(std::int64_t epoch, std::int64_t step,
                               std::int64_t steps_per_epoch) const override {
    const auto steps = static_cast<double>(epochs_ * steps_per_epoch);
    const auto place = static_cast<double>(epoch * steps_per_epoch + step);
    return rate(place, pct_start_ * steps - 1, steps - 1);
  }

 private:
  /// The peak may lie at 0 or before it: then there is no rise.
  [[nodiscard]] double rate(double place, double peak, double end) const {
    if (place < peak) return half_cosine(first_, peak_, place / peak);
    return half_cosine(peak_, last_, (place - peak) / (end - peak));
  }

  double first_, peak_, last_;
  double pct_start_;
  std::int64_t epochs_;
};

}  // namespace

std::unique_ptr<Schedule> make_one_cycle(const ScheduleOptions& options) {
  if (options.lr < 0 || options.epochs < 1 || options.pct_start < 0 || options.pct_start >= 1 ||
      options.div_factor <= 0 || options.final_div_factor <= 0) {
    throw ConfigError(
        fmt::format("schedule one_cycle: expected lr >= 0, epochs >= 1, pct_start in [0, 1), "
                    "div_factor > 0 and final_div_factor > 0, got lr {}, epochs {}, pct_start {}, "
                    "div_factor {}, final_div_factor {}",
                    options.lr, options.epochs, options.pct_start, options.div_factor,
                    options.final_div_factor));
  }
  return std::make_unique<OneCycle>(options);
}

}  // namespace precast::recipes
