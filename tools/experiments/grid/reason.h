#pragma once

#include <string>

#include "tools/experiments/trial/journal.h"
#include "tools/experiments/trial/trial.h"

namespace precast::tools {

/// Explains in one line why a trial has no result: how its last process ended, and the last error
/// that this process printed or, if it printed none, how the first rank that failed ended. For a
/// trial that a rule stopped, `stopped early`. Empty while the trial waits or runs, and if it is
/// done.
[[nodiscard]] std::string reason_of(const Trial& trial, const TrialState& state);

}  // namespace precast::tools
