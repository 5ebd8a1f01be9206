#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast grid SWEEP.yaml`: trains a recipe with every combination of some keys' values, several
/// at once, and ranks them (tools/experiments/grid/README.md). @return done, failed, usage or
/// preempted.
int run_grid(const std::vector<std::string>& args);

}  // namespace precast::tools
