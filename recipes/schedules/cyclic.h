#pragma once

#include <memory>

#include "framework/api/schedule.h"

namespace precast::recipes {

/// Linear from 1e-4 lr at epoch 0 to lr at `lr_peak_epoch`, then linear to 0 at `epochs`
/// (ffcv-imagenet's get_cyclic_lr; a one-cycle schedule, Smith & Topin 2018).
/// Defined as numpy.interp defines it also where the peak is not inside the run: a peak at 0 starts
/// at lr; a peak at or past `epochs` is approached and never reached.
/// @throws ConfigError for lr < 0, epochs < 1 or lr_peak_epoch < 0.
[[nodiscard]] std::unique_ptr<Schedule> make_cyclic(const ScheduleOptions& options);

}  // namespace precast::recipes
