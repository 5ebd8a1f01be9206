#include "recipes/methods/scale_schedule.h"

#include <fmt/format.h>

#include <utility>

#include "framework/api/train_plan.h"
#include "framework/core/error.h"
#include "recipes/methods/no_gradient_hooks.h"
#include "recipes/methods/run_shares.h"

namespace precast::recipes {
namespace {

/// A schedule of `from` epochs, stretched to `to` epochs.
class Stretched final : public Schedule {
 public:
  Stretched(std::shared_ptr<const Schedule> schedule, std::int64_t from, std::int64_t to)
      : schedule_(std::move(schedule)), from_(from), to_(to) {}

  [[nodiscard]] double lr(std::int64_t epoch) const override {
    const std::int64_t at = epoch * from_;
    if (at % to_ == 0) return schedule_->lr(at / to_);
    return schedule_->step_lr(at / to_, at % to_, to_);
  }
  [[nodiscard]] double step_lr(std::int64_t epoch, std::int64_t step,
                               std::int64_t steps_per_epoch) const override {
    // Integer arithmetic: each epoch of the original schedule is divided into steps_per_epoch * to_
    // positions.
    const std::int64_t positions = steps_per_epoch * to_;
    const std::int64_t at = (epoch * steps_per_epoch + step) * from_;
    return schedule_->step_lr(at / positions, at % positions, positions);
  }

 private:
  std::shared_ptr<const Schedule> schedule_;
  std::int64_t from_;
  std::int64_t to_;
};

class ScaleSchedule final : public MethodWithoutGradientHooks {
 public:
  void options(Schema& schema) override {
    schema.add("ratio", &ratio_, "factor by which the number of epochs is multiplied")
        .above(0)
        .max(1e3);
  }
  [[nodiscard]] std::vector<MethodRule> rules() const override {
    return {{MethodRule::Kind::after, "progressive_resize",
             "scale_schedule stretches only image sizes that are already set"}};
  }

  void configure(TrainPlan& plan) const override {
    const std::int64_t from = plan.epochs;
    const std::int64_t to = floor_share(ratio_, from);
    if (from == 0 || to == from) return;
    if (to < 1) {
      throw ConfigError(fmt::format(
          "method scale_schedule: expected a ratio that leaves at least one of {} epochs, got {}",
          from, ratio_));
    }
    const std::vector<std::int64_t> sizes = plan.image_size_px;
    plan.image_size_px.clear();
    for (std::int64_t epoch = 0; epoch < to; ++epoch)
      plan.image_size_px.push_back(sizes.at(static_cast<std::size_t>(epoch * from / to)));
    if (std::shared_ptr<const Schedule> scaled = plan.schedule->with_epochs(to)) {
      plan.schedule = std::move(scaled);
    } else {
      plan.schedule = std::make_shared<Stretched>(plan.schedule, from, to);
    }
    plan.epochs = to;
  }

 private:
  double ratio_ = 1;
};

}  // namespace

std::unique_ptr<Method> make_scale_schedule() {
  return std::make_unique<ScaleSchedule>();
}

}  // namespace precast::recipes
