#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast new recipe [NAME] --train-dataset FILE --val-dataset FILE`: writes NAME.yaml, a
/// commented recipe that fits these files and can be used unchanged.
/// @return an exit code
int run_new_recipe(const std::vector<std::string>& args);

}  // namespace precast::tools
