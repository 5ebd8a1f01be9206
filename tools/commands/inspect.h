#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast inspect FILE.beton [options]`: shows what a .beton file holds, or takes one image out.
int run_inspect(const std::vector<std::string>& args);

}  // namespace precast::tools
