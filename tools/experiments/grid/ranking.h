#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tools/experiments/grid/sweep.h"
#include "tools/experiments/trial/journal.h"

namespace precast::tools {

/// Describes a grid for `--json` and its page: `{"folder", "metric", "maximise", "counts",
/// "seconds", "wall_seconds", "slot_seconds", "busy_seconds" (occupancy.h), "shared_loaders" (with
/// grid.share_loader; `{"samples_decoded", "samples_delivered", "decodes_saved"}`), "ranking",
/// "trials"}`.
///
/// `ranking` has one entry for each combination of the axes' values, with its mean and 95 %
/// interval over seeds (null: fewer than two results), best first. Combinations with equal means
/// have the same `rank`. If any trial of a combination has no result (yet), its `rank` is null and
/// it follows the `complete` combinations, whatever its mean; combinations without any result are
/// last. `trials` are in the sweep's order, each with its status: a TrialStatus or `running`.
/// Trials that were started but are not done have the figure of their last epoch, if it is known,
/// and the reason (reason_of()), if there is one.
[[nodiscard]] nlohmann::ordered_json describe_grid(const Sweep& sweep,
                                                   const std::map<std::string, TrialState>& states);

/// The ranking as a text table, followed by shared_loaders_text().
[[nodiscard]] std::string ranking_table(const nlohmann::ordered_json& grid);

/// Says how many decodes the shared loaders saved; empty if there were no shared loaders.
[[nodiscard]] std::string shared_loaders_text(const nlohmann::ordered_json& grid);

/// Formats the numbers of trials by status: `2 done, 1 failed`.
[[nodiscard]] std::string statuses_text(const nlohmann::ordered_json& statuses);
/// The rank of an entry of the ranking; `-` if it has none.
[[nodiscard]] std::string rank_text(const nlohmann::ordered_json& entry);
/// The mean of an entry of the ranking by `metric`: `0.8012 ± 0.0034`; for a single result,
/// `0.8012`; without a result, `-`.
[[nodiscard]] std::string mean_text(const nlohmann::ordered_json& entry, std::string_view metric,
                                    std::string_view plus_minus);

}  // namespace precast::tools
