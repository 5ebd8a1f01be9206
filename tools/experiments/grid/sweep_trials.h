#pragma once

#include <vector>

#include "framework/core/config/schema.h"
#include "tools/experiments/grid/axis_product.h"
#include "tools/experiments/grid/sweep.h"

namespace precast::tools {

/// Adds the trials to a sweep that is otherwise complete: one for each combination of `product`,
/// with the keys of `set` and of the command line, `fixed`, in all of them. If drawn values lead to
/// the same combination several times, warns and adds it once.
///
/// A trial's id covers its settings except fixed keys that change no result (changes_results()), so
/// that the results in the folder remain valid if such a key changes. Earlier versions included
/// these keys; if the folder has a run with that id, the trial keeps it.
/// @param diagnostics receives an error if there are too many trials.
void add_trials(Sweep& sweep, const std::vector<SweepAxis>& fixed, const AxisProduct& product,
                Diagnostics& diagnostics);

}  // namespace precast::tools
