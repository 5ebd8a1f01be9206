#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast index`: writes the sidecar with which loaders decode crops of a dataset's JPEGs without
/// decoding the parts before them.
int run_index(const std::vector<std::string>& args);

}  // namespace precast::tools
