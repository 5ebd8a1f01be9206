#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast sizes SOURCE`: estimates the size of a dataset and its read rate for each way of
/// storing it, measured on some of its images.
int run_sizes(const std::vector<std::string>& args);

}  // namespace precast::tools
