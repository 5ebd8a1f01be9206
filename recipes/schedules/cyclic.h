#pragma once

#include <cstdint>
#include <memory>

#include "framework/api/schedule.h"

namespace precast::recipes {

struct CyclicOptions {
  /// The epoch of the highest rate.
  std::int64_t lr_peak_epoch = 2;

  void options(Schema& schema);
};

/// The rate is linear from 1e-4 lr at epoch 0 to lr at `lr_peak_epoch`, then linear to 0 at
/// `epochs` (ffcv-imagenet's get_cyclic_lr; a one-cycle schedule, Smith & Topin 2018).
/// If the peak is not inside the run, the rate is also the same as with numpy.interp: with a peak
/// at epoch 0, it starts at lr; with a peak at or after `epochs`, it never reaches lr.
[[nodiscard]] std::unique_ptr<Schedule> make_cyclic(const ScheduleInputs& inputs,
                                                    const CyclicOptions& options);

}  // namespace precast::recipes
