#pragma once

#include <memory>

#include "framework/api/schedule.h"

namespace precast::recipes {

/// Half a cosine up from lr / div_factor to lr within the first `pct_start` of the run, half a
/// cosine down to lr / div_factor / final_div_factor in the rest (Smith & Topin 2018), as torch's
/// OneCycleLR in its two-phase form; the momentum is not cycled. As there the phases are laid out
/// on steps: the last step of the run has the last rate. At the borders of epochs, where no steps
/// are known, lr() gives the limit of ever smaller steps.
/// @throws ConfigError for lr < 0, epochs < 1, pct_start outside [0, 1) or a factor <= 0.
[[nodiscard]] std::unique_ptr<Schedule> make_one_cycle(const ScheduleOptions& options);

}  // namespace precast::recipes
