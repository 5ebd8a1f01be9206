#pragma once

#include <string>

#include "tools/experiments/trial/journal.h"
#include "tools/experiments/trial/trial.h"

namespace precast::tools {

/// Why a trial has no result, in a line for people: how its process ended, and the last error that
/// it printed. Empty while it waits or runs.
[[nodiscard]] std::string reason_of(const Trial& trial, const TrialState& state);

}  // namespace precast::tools
