#include "recipes/schedules/after_warmup.h"

#include <utility>

namespace precast::recipes {
namespace {

class AfterWarmup final : public Schedule {
 public:
  AfterWarmup(const ScheduleInputs& inputs, const WarmupOptions& options, RateOfShare rate)
      : lr_(inputs.lr),
        warmup_epochs_(options.warmup_epochs),
        epochs_(inputs.epochs),
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

void WarmupOptions::options(Schema& schema) {
  schema.add("warmup_epochs", &warmup_epochs, "epochs of linear warm-up from 0").min(0);
}

std::unique_ptr<Schedule> after_warmup(const ScheduleInputs& inputs, const WarmupOptions& options,
                                       RateOfShare rate) {
  return std::make_unique<AfterWarmup>(inputs, options, std::move(rate));
}

}  // namespace precast::recipes
