#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast new plugin NAME [--kind model|method|transform]`: creates a folder with a plug-in that
/// builds, and a test that trains with it. The files come from tools/plugins/skeleton.
int run_new_plugin(const std::vector<std::string>& args);

}  // namespace precast::tools
