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

/// The rate after the warm-up, as a function of the share of the remaining steps that are done, 0
/// to 1.
using RateOfShare = std::function<double(double)>;

/// A schedule whose rate rises linearly from 0 to lr in the steps of `warmup_epochs` (Goyal et al.
/// 2017) and then follows `rate`. Step s of the W warm-up steps has the rate lr * s / W, and step s
/// of the N steps after them has the share s / N, so the share 1 is never reached. A warm-up as
/// long as the run or longer is not an error: the rate then only rises, so a recipe can be tried
/// for one epoch unchanged.
[[nodiscard]] std::unique_ptr<Schedule> after_warmup(const ScheduleInputs& inputs,
                                                     const WarmupOptions& options,
                                                     RateOfShare rate);

}  // namespace precast::recipes
