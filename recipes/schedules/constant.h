#pragma once

#include <memory>

#include "framework/api/schedule.h"

namespace precast::recipes {

/// After the warm-up, lr. @throws ConfigError as after_warmup.
[[nodiscard]] std::unique_ptr<Schedule> make_constant(const ScheduleOptions& options);

}  // namespace precast::recipes
