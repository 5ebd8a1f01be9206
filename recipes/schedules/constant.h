#pragma once

#include <memory>

#include "recipes/schedules/after_warmup.h"

namespace precast::recipes {

/// The rate is lr after the warm-up. @throws ConfigError as after_warmup.
[[nodiscard]] std::unique_ptr<Schedule> make_constant(const ScheduleInputs& inputs,
                                                      const WarmupOptions& options);

}  // namespace precast::recipes
