#pragma once

#include <string>
#include <vector>

#include "tools/report/run_record.h"

namespace precast::tools {

/// Returns the metric that determines the best checkpoint if all runs have the same and it is not
/// an accuracy; otherwise an empty string.
[[nodiscard]] std::string common_metric(const std::vector<RunRecord>& runs);

/// Return the charts of a page as SVG: figures over epochs and minutes, and the shares of the time.
/// If there are several runs, each has its own colour. A line chart is left out if no run has data
/// for it. The chart of a common_metric() is the first one.
[[nodiscard]] std::vector<std::string> learning_charts(const std::vector<RunRecord>& runs);
[[nodiscard]] std::vector<std::string> speed_charts(const std::vector<RunRecord>& runs);

}  // namespace precast::tools
