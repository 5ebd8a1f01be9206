#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast list`: everything that a recipe can name, with its options and defaults.
int run_list(const std::vector<std::string>& args);

}  // namespace precast::tools
