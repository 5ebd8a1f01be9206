#pragma once

#include <string>
#include <vector>

#include "tools/report/run_record.h"

namespace precast::tools {

/// The metric that determines the best checkpoint, if it is the same in all runs and no accuracy;
/// otherwise empty.
[[nodiscard]] std::string common_metric(const std::vector<RunRecord>& runs);

/// Charts of the runs' figures over epochs and minutes, and the shares of their time. If there are
/// several runs, each has its own colour. A line chart without data from any run is left out. If
/// the runs have a common_metric(), its chart is the first one.
[[nodiscard]] std::vector<std::string> learning_charts(const std::vector<RunRecord>& runs);
[[nodiscard]] std::vector<std::string> speed_charts(const std::vector<RunRecord>& runs);

}  // namespace precast::tools
