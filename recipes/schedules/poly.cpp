#include "recipes/schedules/poly.h"

#include <fmt/format.h>

#include <cmath>

#include "framework/core/error.h"
#include "recipes/schedules/after_warmup.h"

namespace precast::recipes {

std::unique_ptr<Schedule> make_poly(const ScheduleOptions& options) {
  if (options.power <= 0) {
    throw ConfigError(fmt::format("schedule poly: expected power > 0, got {}", options.power));
  }
  return after_warmup("poly", options, [lr = options.lr, power = options.power](double share) {
    return lr * std::pow(1 - share, power);
  });
}

}  // namespace precast::recipes
