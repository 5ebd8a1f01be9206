#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast help --man|--man-pages|--options`: prints or writes pages that are made from the
/// descriptions of all commands. `help` without such an option is part of run_command().
int run_help(const std::vector<std::string>& args);

/// `precast completion bash|zsh`: prints a script.
int run_completion(const std::vector<std::string>& args);

}  // namespace precast::tools
