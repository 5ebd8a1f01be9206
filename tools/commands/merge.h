#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast merge A.beton B.beton... OUT.beton`: merges files with the same fields into one.
int run_merge(const std::vector<std::string>& args);

}  // namespace precast::tools
