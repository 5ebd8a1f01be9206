#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast inspect FILE.beton [options]`: shows the contents of a .beton file, or writes the
/// values of one sample to files.
int run_inspect(const std::vector<std::string>& args);

}  // namespace precast::tools
