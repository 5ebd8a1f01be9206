#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/experiments/grid/sweep.h"

namespace precast::tools {

/// Trials that together have every value of every axis: what is wrong with a value shows in one of
/// them. In the sweep's order, at most as many as there are values, and no more than 64.
[[nodiscard]] std::vector<const Trial*> covering_trials(const Sweep& sweep);

/// Lets `program train --dry-run` read the recipe with the settings of each of `trials`, several at
/// once. @throws ConfigError with all that it finds wrong, each message once, at the place in the
/// sweep where it can be.
void check_trials(const Sweep& sweep, const std::vector<const Trial*>& trials,
                  const std::filesystem::path& program, std::size_t at_once);

}  // namespace precast::tools
