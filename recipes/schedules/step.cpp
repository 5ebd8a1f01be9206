#include "recipes/schedules/step.h"

#include <fmt/format.h>

#include <cmath>

#include "framework/core/error.h"

namespace precast::recipes {
namespace {

class Step final : public Schedule {
 public:
  explicit Step(const ScheduleOptions& options) : options_(options) {}

  [[nodiscard]] double lr(std::int64_t epoch) const override {
    if (epoch >= options_.epochs) return 0;
    const auto steps = static_cast<double>(epoch / options_.step_length);
    return std::pow(options_.step_ratio, steps) * options_.lr;
  }

 private:
  ScheduleOptions options_;
};

}  // namespace

std::unique_ptr<Schedule> make_step(const ScheduleOptions& options) {
  if (options.lr < 0 || options.epochs < 1 || options.step_length < 1 || options.step_ratio <= 0) {
    throw ConfigError(
        fmt::format("schedule step: expected lr >= 0, epochs >= 1, step_length >= 1 and "
                    "step_ratio > 0, got lr {}, epochs {}, step_length {}, step_ratio {}",
                    options.lr, options.epochs, options.step_length, options.step_ratio));
  }
  return std::make_unique<Step>(options);
}

}  // namespace precast::recipes
