#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast index`: writes the JPEG index of a dataset as a sidecar. With it, loaders decode a crop
/// of a JPEG without decoding the data before the crop.
int run_index(const std::vector<std::string>& args);

}  // namespace precast::tools
