#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast reproduce TABLE.yaml`: trains the rows of a published table and shows the results next
/// to the published ones.
int run_reproduce(const std::vector<std::string>& args);

}  // namespace precast::tools
