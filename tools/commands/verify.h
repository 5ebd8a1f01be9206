#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast verify FILE.beton...`: whether files are whole.
int run_verify(const std::vector<std::string>& args);

}  // namespace precast::tools
