#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast grid SWEEP.yaml`: trains a recipe with every combination of the values of some keys,
/// several trials at the same time, and ranks the combinations (tools/experiments/grid/README.md).
/// @return the exit code: done, failed, usage or preempted.
int run_grid(const std::vector<std::string>& args);

}  // namespace precast::tools
