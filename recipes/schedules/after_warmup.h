#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "framework/api/schedule.h"

namespace precast::recipes {

/// Options of the schedules that begin with a warm-up.
struct WarmupOptions {
  /// Epochs of linear warm-up from 0 to lr.
  std::int64_t warmup_epochs = 0;

  void options(Schema& schema);
};

/// The rate after the warm-up, as a function of the completed fraction of the steps that follow the
/// warm-up.
using RateOfShare = std::function<double(double)>;

/// A schedule whose rate rises linearly from 0 to lr in the steps of `warmup_epochs` (Goyal et al.
/// 2017) and then follows `rate`. Step s of the W warm-up steps has the rate lr * s / W, and step s
/// of the N steps after them is at fraction s / N, so the fraction 1 is never reached. A warm-up
/// may be as long as the run or longer, so that a recipe can be tried for one epoch without other
/// changes. The rate then only rises, and warn_of_short_run() (tools/app/plan.h) prints a warning.
[[nodiscard]] std::unique_ptr<Schedule> after_warmup(const ScheduleInputs& inputs,
                                                     const WarmupOptions& options,
                                                     RateOfShare rate);

}  // namespace precast::recipes
