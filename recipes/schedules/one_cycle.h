#pragma once

#include <memory>

#include "framework/api/schedule.h"

namespace precast::recipes {

struct OneCycleOptions {
  /// The fraction of the run in which the rate rises.
  double pct_start = 0.3;
  /// The first rate is lr / div_factor; the last rate is the first rate / final_div_factor.
  double div_factor = 25;
  double final_div_factor = 1e4;

  void options(Schema& schema);
};

/// The rate rises along half a cosine from lr / div_factor to lr over the first `pct_start` of the
/// run, then falls along half a cosine to lr / div_factor / final_div_factor over the rest (Smith &
/// Topin 2018), like torch's OneCycleLR in its two-phase form; the momentum is not cycled. As in
/// torch, the phases are measured in steps: the last step of the run has the last rate. lr() is not
/// given the number of steps per epoch, so it returns the limit for infinitely many steps.
[[nodiscard]] std::unique_ptr<Schedule> make_one_cycle(const ScheduleInputs& inputs,
                                                       const OneCycleOptions& options);

}  // namespace precast::recipes
