#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast write SOURCE OUT.beton [options]`: writes images into a .beton file.
/// @return an exit code; 128 + signal after SIGINT or SIGTERM, in which case no file is left.
int run_write(const std::vector<std::string>& args);

}  // namespace precast::tools
