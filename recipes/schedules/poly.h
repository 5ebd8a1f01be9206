#pragma once

#include <memory>

#include "framework/api/schedule.h"

namespace precast::recipes {

/// After the warm-up, lr * (1 - share)^power, down to 0, as torch's PolynomialLR set once a step.
/// With power 2 the schedule of MLPerf's ResNet-50, whose end it puts at 1e-4 instead.
/// @throws ConfigError as after_warmup, and for power <= 0.
[[nodiscard]] std::unique_ptr<Schedule> make_poly(const ScheduleOptions& options);

}  // namespace precast::recipes
