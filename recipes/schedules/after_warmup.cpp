#include "recipes/schedules/after_warmup.h"

#include <fmt/format.h>

#include <utility>

#include "framework/core/error.h"

namespace precast::recipes {
namespace {

class AfterWarmup final : public Schedule {
 public:
  AfterWarmup(const ScheduleOptions& options, RateOfShare rate)
      : lr_(options.lr),
        warmup_epochs_(options.warmup_epochs),
        epochs_(options.epochs),
        rate_(std::move(rate)) {}

  [[nodiscard]] double lr(std::int64_t epoch) const override { return step_lr(epoch, 0, 1); }

  [[nodiscard]] double step_lr(std::int64_t epoch, std::int64_t step,
                               std::int64_t steps_per_epoch) const override {
    const std::int64_t done = epoch * steps_per_epoch + step;
    const std::int64_t warmup = warmup_epochs_ * steps_per_epoch;
    const std::int64_t rest = epochs_ * steps_per_epoch - warmup;
    if (done < warmup) return lr_ * share(done, warmup);
    return rest > 0 ? rate_(share(done - warmup, rest)) : lr_;
  }

  [[nodiscard]] std::unique_ptr<Schedule> with_epochs(std::int64_t epochs) const override {
    auto other = std::make_unique<AfterWarmup>(*this);
    other->epochs_ = epochs;
    return other;
  }

 private:
  static double share(std::int64_t part, std::int64_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  }

  double lr_;
  std::int64_t warmup_epochs_;
  std::int64_t epochs_;
  RateOfShare rate_;
};

}  // namespace

std::unique_ptr<Schedule> after_warmup(std::string_view name, const ScheduleOptions& options,
                                       RateOfShare rate) {
  if (options.lr < 0 || options.epochs < 1 || options.warmup_epochs < 0) {
    throw ConfigError(
        fmt::format("schedule {}: expected lr >= 0, epochs >= 1 and warmup_epochs >= 0, got lr {}, "
                    "epochs {}, warmup_epochs {}",
                    name, options.lr, options.epochs, options.warmup_epochs));
  }
  return std::make_unique<AfterWarmup>(options, std::move(rate));
}

}  // namespace precast::recipes
