#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast select IN.beton OUT.beton...`: writes some samples of a file, to one file or divided
/// among several; optionally in random order, or with images encoded again.
int run_select(const std::vector<std::string>& args);

}  // namespace precast::tools
