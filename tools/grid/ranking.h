#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/grid/sweep.h"
#include "tools/trial/journal.h"

namespace precast::tools {

/// All facts of a grid, for `--json`: `{"folder", "metric", "counts", "ranking", "trials"}`.
/// `ranking` has one entry for each combination of axes with its mean and 95 % interval over seeds,
/// best first; combinations without a finished trial come last. `trials` are in the sweep's order,
/// those that are not finished with the figure of their last epoch.
[[nodiscard]] nlohmann::ordered_json describe_grid(const Sweep& sweep,
                                                   const std::map<std::string, TrialState>& states);

/// The ranking as a table for people.
[[nodiscard]] std::string ranking_table(const nlohmann::ordered_json& grid);

}  // namespace precast::tools
