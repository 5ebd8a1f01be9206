#pragma once

#include <vector>

#include "tools/experiments/grid/sweep.h"
#include "tools/experiments/trial/check.h"

namespace precast::tools {

/// Chooses trials that together contain every value of every axis, so that an error in any value
/// occurs in one of them. At most 64 trials are chosen; if these are not enough, some values are
/// missing. The trials are in the sweep's order.
[[nodiscard]] std::vector<const Trial*> covering_trials(const Sweep& sweep);

/// Runs check_by_dry_run() for `trials`. If some keys have no effect in any of them, further trials
/// of the sweep are checked, up to 64 together. With UnreadSettings::reject, the keys are errors if
/// it is certain that no trial of the sweep reads them; otherwise they are warnings.
/// `options.further` is ignored. The messages name locations in the sweep, if these are known.
/// @return false if a signal stopped the check.
[[nodiscard]] bool check_trials(const Sweep& sweep, const std::vector<const Trial*>& trials,
                                DryRunOptions options);

}  // namespace precast::tools
