#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast help --man|--man-pages|--options`: prints or writes pages generated from the
/// descriptions of all commands. run_command() handles `help` without these options.
int run_help(const std::vector<std::string>& args);

/// `precast completion bash|zsh`: prints a completion script.
int run_completion(const std::vector<std::string>& args);

}  // namespace precast::tools
