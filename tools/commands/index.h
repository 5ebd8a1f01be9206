#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast index`: writes the sidecar that allows decoding only the crops of a dataset's JPEGs.
int run_index(const std::vector<std::string>& args);

}  // namespace precast::tools
