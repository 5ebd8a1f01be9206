#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast sizes SOURCE`: estimates the size and the read rate of a dataset for each way of
/// storing it, from measurements on some of its images.
int run_sizes(const std::vector<std::string>& args);

}  // namespace precast::tools
