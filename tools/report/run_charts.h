#pragma once

#include <string>
#include <vector>

#include "tools/report/run_record.h"

namespace precast::tools {

/// The metric that determines the best checkpoint, if it is the same in all runs and not the
/// accuracy; otherwise empty.
[[nodiscard]] std::string common_metric(const std::vector<RunRecord>& runs);

/// Charts of the runs' figures over epochs and minutes, one colour per run. A chart without data
/// from any run is left out.
[[nodiscard]] std::vector<std::string> learning_charts(const std::vector<RunRecord>& runs);
[[nodiscard]] std::vector<std::string> speed_charts(const std::vector<RunRecord>& runs);

}  // namespace precast::tools
