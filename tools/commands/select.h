#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast select IN.beton OUT.beton...`: writes some samples of a file, or splits all of them, in
/// another order, or with images stored in another way.
int run_select(const std::vector<std::string>& args);

}  // namespace precast::tools
