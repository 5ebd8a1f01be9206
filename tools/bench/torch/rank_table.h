#pragma once

#include <string>
#include <vector>

#include "tools/cli/arguments.h"

namespace precast::tools {

/// `bench step --ranks 1,2,4`: prints images per second over all ranks, with a row for each number
/// of ranks and a column for each combination of `--data` and `--variable_update`, and the
/// efficiency: the speed per rank relative to the first row. Each cell is a separate launch on this
/// host.
/// @param args the command's arguments. @param device training.device. @return the exit code of the
/// first launch that failed, or 0.
int run_rank_table(const std::vector<std::string>& args, const Arguments& options,
                   const std::string& device);

/// The arguments without the named options, which may be given as `--name value` or `--name=value`.
[[nodiscard]] std::vector<std::string> without_options(const std::vector<std::string>& args,
                                                       const std::vector<std::string>& names);

}  // namespace precast::tools
