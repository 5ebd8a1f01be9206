#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast list`: prints all parts that recipes and commands can name, with options and defaults.
int run_list(const std::vector<std::string>& args);

}  // namespace precast::tools
