#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast list`: everything that a recipe can name, with its options and defaults. Parts that the
/// recipe tells something by keys of its own (optimisers, schedules, orders) are listed with those.
int run_list(const std::vector<std::string>& args);

}  // namespace precast::tools
