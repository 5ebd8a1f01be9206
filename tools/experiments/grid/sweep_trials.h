#pragma once

#include <vector>

#include "framework/core/config/schema.h"
#include "tools/experiments/grid/axis_product.h"
#include "tools/experiments/grid/sweep.h"

namespace precast::tools {

/// Adds the trials to a sweep that is otherwise complete: one for each combination of `product`. If
/// drawn values lead to the same combination several times, warns and adds it once.
///
/// A trial's id is computed from its settings, without the fixed settings that change no result
/// (changes_results()), so that the results in the folder remain valid if such a setting changes.
/// Earlier versions computed the id from all settings; if the folder has a run with that old id,
/// the trial uses it.
/// @param fixed settings of all trials, from the sweep's key `set` and from the command line.
/// @param diagnostics receives an error if there are too many trials.
void add_trials(Sweep& sweep, const std::vector<SweepAxis>& fixed, const AxisProduct& product,
                Diagnostics& diagnostics);

}  // namespace precast::tools
