#pragma once

#include <filesystem>
#include <string>

#include "tools/experiments/grid/sweep.h"

namespace precast::tools {

/// A batch script for `sbatch` with one array task a trial. A task that is pre-empted or runs out
/// of time saves, and is put back into the queue. @param program `precast`, an absolute path.
[[nodiscard]] std::string slurm_script(const Sweep& sweep, const std::filesystem::path& program);

}  // namespace precast::tools
