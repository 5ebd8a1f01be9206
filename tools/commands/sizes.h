#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast sizes SOURCE`: how large a dataset becomes in each way of storing it, and how fast each
/// is read, measured on some of its images.
int run_sizes(const std::vector<std::string>& args);

}  // namespace precast::tools
