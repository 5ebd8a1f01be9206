#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast list`: prints all parts that a recipe can name, with options and defaults. Parts with
/// their own recipe keys (optimisers, schedules, orders) are listed with those keys.
int run_list(const std::vector<std::string>& args);

}  // namespace precast::tools
