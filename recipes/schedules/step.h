#pragma once

#include <memory>

#include "framework/api/schedule.h"

namespace precast::recipes {

/// lr * step_ratio^(epoch / step_length), and 0 from `epochs` on, so that the rate falls
/// linearly to 0 within the last epoch (ffcv-imagenet's get_step_lr).
/// @throws ConfigError for lr < 0, epochs < 1, step_length < 1 or step_ratio <= 0.
[[nodiscard]] std::unique_ptr<Schedule> make_step(const ScheduleOptions& options);

}  // namespace precast::recipes
