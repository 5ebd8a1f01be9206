#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/experiments/grid/sweep.h"

namespace precast::tools {

/// Chooses trials that together contain every value of every axis, so that an error in any value
/// occurs in one of them. At most 64 trials are chosen; if these are not enough, some values are
/// missing. The trials are in the sweep's order.
[[nodiscard]] std::vector<const Trial*> covering_trials(const Sweep& sweep);

/// Runs `program train --dry-run` on the recipe with the settings of each trial in `trials`,
/// `at_once` of them at the same time. Keys that none of these trials reads are errors if `trials`
/// are all trials of the sweep, otherwise warnings. @throws ConfigError with all errors, each
/// message once, with its location in the sweep if that is known.
void check_trials(const Sweep& sweep, const std::vector<const Trial*>& trials,
                  const std::filesystem::path& program, std::size_t at_once);

}  // namespace precast::tools
