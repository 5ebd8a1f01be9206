#include "recipes/schedules/step.h"

#include <cmath>

namespace precast::recipes {
namespace {

class Step final : public Schedule {
 public:
  Step(const ScheduleInputs& inputs, const StepOptions& options)
      : inputs_(inputs), options_(options) {}

  [[nodiscard]] double lr(std::int64_t epoch) const override {
    if (epoch >= inputs_.epochs) return 0;
    const auto steps = static_cast<double>(epoch / options_.step_length);
    return std::pow(options_.step_ratio, steps) * inputs_.lr;
  }

 private:
  ScheduleInputs inputs_;
  StepOptions options_;
};

}  // namespace

void StepOptions::options(Schema& schema) {
  schema.add("step_ratio", &step_ratio, "factor of the rate after every step_length epochs")
      .above(0);
  schema.add("step_length", &step_length, "epochs after which the rate is multiplied by step_ratio")
      .min(1);
}

std::unique_ptr<Schedule> make_step(const ScheduleInputs& inputs, const StepOptions& options) {
  return std::make_unique<Step>(inputs, options);
}

}  // namespace precast::recipes
