#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/experiments/grid/sweep.h"

namespace precast::tools {

/// Chooses trials that together contain every value of every axis, so that an error in any value
/// occurs in one of them. They are in the sweep's order, at most as many as there are values, and
/// no more than 64.
[[nodiscard]] std::vector<const Trial*> covering_trials(const Sweep& sweep);

/// Runs `program train --dry-run` on the recipe with the settings of each of `trials`, several at
/// once. @throws ConfigError with all errors found, each message once, with its location in the
/// sweep if that is known.
void check_trials(const Sweep& sweep, const std::vector<const Trial*>& trials,
                  const std::filesystem::path& program, std::size_t at_once);

}  // namespace precast::tools
