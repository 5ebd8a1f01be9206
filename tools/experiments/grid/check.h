#pragma once

#include <vector>

#include "tools/experiments/grid/sweep.h"
#include "tools/experiments/trial/check.h"

namespace precast::tools {

/// Chooses trials that together contain every value of every axis, so that an error in any value
/// occurs in one of them. At most 64 trials are chosen; if these are not enough, some values are
/// missing. The trials are in the sweep's order.
[[nodiscard]] std::vector<const Trial*> covering_trials(const Sweep& sweep);

/// check_by_dry_run() for `trials`. Keys that none of these trials reads are errors if `trials` are
/// all trials of the sweep, otherwise warnings; `options.unread` is ignored. The errors have their
/// locations in the sweep, if these are known.
void check_trials(const Sweep& sweep, const std::vector<const Trial*>& trials,
                  DryRunOptions options);

}  // namespace precast::tools
