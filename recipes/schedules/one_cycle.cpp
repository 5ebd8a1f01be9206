#include "recipes/schedules/one_cycle.h"

#include <cmath>
#include <numbers>

namespace precast::recipes {
namespace {

/// Half a cosine from `from` at fraction 0 to `to` at fraction 1.
double half_cosine(double from, double to, double share) {
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * share));
}

class OneCycle final : public Schedule {
 public:
  OneCycle(const ScheduleInputs& inputs, const OneCycleOptions& options)
      : first_(inputs.lr / options.div_factor),
        peak_lr_(inputs.lr),
        last_(first_ / options.final_div_factor),
        pct_start_(options.pct_start),
        epochs_(inputs.epochs) {}

  [[nodiscard]] double lr(std::int64_t epoch) const override {
    const auto end = static_cast<double>(epochs_);
    return rate(static_cast<double>(epoch), pct_start_ * end, end);
  }

  [[nodiscard]] double step_lr(std::int64_t epoch, std::int64_t step,
                               std::int64_t steps_per_epoch) const override {
    const auto steps = static_cast<double>(epochs_ * steps_per_epoch);
    const auto position = static_cast<double>(epoch * steps_per_epoch + step);
    return rate(position, pct_start_ * steps - 1, steps - 1);
  }

  [[nodiscard]] std::unique_ptr<Schedule> with_epochs(std::int64_t epochs) const override {
    auto other = std::make_unique<OneCycle>(*this);
    other->epochs_ = epochs;
    return other;
  }

 private:
  /// If `peak` is 0 or negative, the rate does not rise.
  [[nodiscard]] double rate(double position, double peak, double end) const {
    if (position < peak) return half_cosine(first_, peak_lr_, position / peak);
    return half_cosine(peak_lr_, last_, (position - peak) / (end - peak));
  }

  double first_, peak_lr_, last_;
  double pct_start_;
  std::int64_t epochs_;
};

}  // namespace

void OneCycleOptions::options(Schema& schema) {
  schema.add("pct_start", &pct_start, "fraction of the run in which the rate rises")
      .min(0)
      .below(1);
  schema.add("div_factor", &div_factor, "highest rate / first rate").above(0);
  schema.add("final_div_factor", &final_div_factor, "first rate / last rate").above(0);
}

std::unique_ptr<Schedule> make_one_cycle(const ScheduleInputs& inputs,
                                         const OneCycleOptions& options) {
  return std::make_unique<OneCycle>(inputs, options);
}

}  // namespace precast::recipes
