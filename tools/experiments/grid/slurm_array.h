#pragma once

#include <filesystem>
#include <string>

#include "tools/experiments/grid/sweep.h"

namespace precast::tools {

/// Returns a batch script for `sbatch` with one array task per trial. The script contains the names
/// of the trials, so that a task trains the same trial if the sweep is extended before it starts. A
/// task that is preempted or reaches its time limit saves a checkpoint and is requeued.
/// @param program the absolute path of `precast`.
[[nodiscard]] std::string slurm_script(const Sweep& sweep, const std::filesystem::path& program);

}  // namespace precast::tools
