#pragma once

#include <memory>

#include "recipes/schedules/after_warmup.h"

namespace precast::recipes {

/// After the warm-up, the rate stays at lr.
[[nodiscard]] std::unique_ptr<Schedule> make_constant(const ScheduleInputs& inputs,
                                                      const WarmupOptions& options);

}  // namespace precast::recipes
