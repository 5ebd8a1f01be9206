#pragma once

#include <memory>

#include "framework/api/schedule.h"

namespace precast::recipes {

/// After the warm-up, half a cosine from lr to `final_lr` (Loshchilov & Hutter, ICLR 2017), as
/// torch's CosineAnnealingLR set once a step.
/// @throws ConfigError as after_warmup, and for final_lr < 0.
[[nodiscard]] std::unique_ptr<Schedule> make_cosine(const ScheduleOptions& options);

}  // namespace precast::recipes
