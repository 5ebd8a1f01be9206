#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/report/run_record.h"

namespace precast::tools {

/// Returns the HTML page of one run, or one that compares several. @param runs at least one. @param
/// page_folder the folder that the page is for; links to the runs' files are relative to it.
[[nodiscard]] std::string report_page(const std::vector<RunRecord>& runs,
                                      const std::filesystem::path& page_folder);

/// Returns the figures of the runs as JSON: {"runs": [{name, folder, finished, top_1, top_5,
/// best_metric, metric, train_minutes, images_per_second, wait_share, epochs: [...], notes}],
/// "differences": {key: [value of each run]}}.
[[nodiscard]] nlohmann::ordered_json report_json(const std::vector<RunRecord>& runs);

/// Reads a run folder and writes report.html into it. @throws IoError
void write_run_report(const std::filesystem::path& run_folder);

/// Returns the configuration keys whose values differ between the runs, except those of the
/// sections `logging` and `checkpoint`.
[[nodiscard]] std::vector<std::string> differing_keys(const std::vector<RunRecord>& runs);

}  // namespace precast::tools
