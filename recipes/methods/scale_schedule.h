#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Makes a run shorter or longer (Composer's scale_schedule_ratio): the number of epochs is
/// multiplied by `ratio` and rounded down, and the recipe's learning rate and image size at epoch e
/// are used at epoch e * ratio. The highest rate stays the same, and so does the length of a
/// warm-up (`lr.warmup_epochs`, `lr.lr_peak_epoch`), as in Composer's schedulers without
/// `scale_warmup`: only the schedule after the warm-up is stretched to the rest of the run.
/// Options: ratio, above 0; default 1.
/// configure() throws ConfigError if no epoch would be left.
/// Cost: none.
[[nodiscard]] std::unique_ptr<Method> make_scale_schedule();

}  // namespace precast::recipes
