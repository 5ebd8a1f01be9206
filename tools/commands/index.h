#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast index`: writes the sidecar that lets crops of a dataset's JPEGs be decoded alone.
int run_index(const std::vector<std::string>& args);

}  // namespace precast::tools
