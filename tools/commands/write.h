#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast write SOURCE OUT.beton [options]`: writes the samples of a dataset into a .beton file.
/// @return an exit code. @throws Error with exit code 128 + signal after SIGINT, SIGTERM or SIGHUP;
/// no partial file is left.
int run_write(const std::vector<std::string>& args);

}  // namespace precast::tools
