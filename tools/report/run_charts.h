#pragma once

#include <string>
#include <vector>

#include "tools/report/run_record.h"

namespace precast::tools {

/// What the figures of runs look like over epochs and minutes, a colour a run. Charts of what no
/// run tells are left out.
[[nodiscard]] std::vector<std::string> learning_charts(const std::vector<RunRecord>& runs);
[[nodiscard]] std::vector<std::string> speed_charts(const std::vector<RunRecord>& runs);

}  // namespace precast::tools
