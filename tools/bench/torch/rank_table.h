#pragma once

#include <string>
#include <vector>

#include "tools/cli/arguments.h"

namespace precast::tools {

/// The values of --data and --variable-update for one column of the table; `update` is empty if
/// --variable-update was not given.
struct RankColumn {
  std::string data;
  std::string update;
};

/// Returns every combination of the values of --data and --variable-update.
[[nodiscard]] std::vector<RankColumn> read_columns(const Arguments& options);

/// `bench step --ranks 1,2,4`: prints a table (or JSON) with a row for each number of ranks and a
/// column for each of `columns`. A cell shows the images per second over all ranks and the
/// efficiency, that is, the speed per rank relative to the first row. Each cell is a separate
/// launch on this host.
/// @param args the command's arguments. @param device training.device. @return the exit code of the
/// first launch that failed, or 0.
int run_rank_table(const std::vector<std::string>& args, const Arguments& options,
                   const std::vector<RankColumn>& columns, const std::string& device);

/// Returns the arguments without the named options and their values. Recognises `--name value` and
/// `--name=value`; for one-letter names, `-n value` and `-nvalue`.
[[nodiscard]] std::vector<std::string> without_options(const std::vector<std::string>& args,
                                                       const std::vector<std::string>& names);

}  // namespace precast::tools
