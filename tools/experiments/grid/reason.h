#pragma once

#include <string>

#include "tools/experiments/trial/journal.h"
#include "tools/experiments/trial/trial.h"

namespace precast::tools {

/// Explains in one line why a trial has no result: how its last process ended, and the last error
/// that this process printed or, without one, how its first rank failed. Empty while the trial
/// waits or runs.
[[nodiscard]] std::string reason_of(const Trial& trial, const TrialState& state);

}  // namespace precast::tools
