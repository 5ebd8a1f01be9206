#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast train CONFIG.yaml`: trains the model of a recipe and writes a run folder.
int run_train(const std::vector<std::string>& args);

}  // namespace precast::tools
