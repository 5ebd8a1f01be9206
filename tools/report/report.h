#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast report RUN... [-o FILE.html] [--json]`: writes the page of one run or of several.
int run_report(const std::vector<std::string>& args);

}  // namespace precast::tools
