#pragma once

#include <string>
#include <vector>

#include "tools/cli/arguments.h"

namespace precast::tools {

/// `bench step --ranks 1,2,4`: images per second over all ranks, a row a number of ranks, a column
/// each combination of `--data` and `--variable_update`, and how much of the first row's speed a
/// rank keeps (efficiency). Each cell is a launch of its own on this host.
/// @param args the command's own. @return the exit code of the first launch that failed, or 0.
int run_rank_table(const std::vector<std::string>& args, const Arguments& options);

/// The arguments without these options, be they given as `--name value` or as `--name=value`.
[[nodiscard]] std::vector<std::string> without_options(const std::vector<std::string>& args,
                                                       const std::vector<std::string>& names);

}  // namespace precast::tools
