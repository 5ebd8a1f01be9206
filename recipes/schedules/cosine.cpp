#include "recipes/schedules/cosine.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "framework/core/error.h"
#include "recipes/schedules/after_warmup.h"

namespace precast::recipes {

std::unique_ptr<Schedule> make_cosine(const ScheduleOptions& options) {
  if (options.final_lr < 0) {
    throw ConfigError(
        fmt::format("schedule cosine: expected final_lr >= 0, got {}", options.final_lr));
  }
  return after_warmup("cosine", options, [lr = options.lr, last = options.final_lr](double share) {
    return last + (lr - last) * (1 + std::cos(std::numbers::pi * share)) / 2;
  });
}

}  // namespace precast::recipes
