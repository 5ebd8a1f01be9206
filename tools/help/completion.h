#pragma once

#include <string>
#include <vector>

#include "tools/cli/command_help.h"

namespace precast::tools {

/// A script with which bash completes commands, options, and sections and keys of recipes; for all
/// other words, it completes file names. It needs no other package and starts no program.
[[nodiscard]] std::string bash_completion(const std::vector<CommandHelp>& commands);

/// The same for zsh. The script can be a file `_precast` in a folder of $fpath, or be sourced after
/// compinit.
[[nodiscard]] std::string zsh_completion(const std::vector<CommandHelp>& commands);

}  // namespace precast::tools
