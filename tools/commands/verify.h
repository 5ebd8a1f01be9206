#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast verify FILE.beton...`: checks whether files are intact.
int run_verify(const std::vector<std::string>& args);

}  // namespace precast::tools
