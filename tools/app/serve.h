#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast serve CONFIG.yaml|FILE.beton --as NAME`: loads the training batches of a recipe into a
/// ring, for training runs on this host.
int run_serve(const std::vector<std::string>& args);

}  // namespace precast::tools
