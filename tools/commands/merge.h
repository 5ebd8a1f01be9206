#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast merge A.beton B.beton... OUT.beton`: files of the same fields as one.
int run_merge(const std::vector<std::string>& args);

}  // namespace precast::tools
