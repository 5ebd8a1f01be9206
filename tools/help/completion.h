#pragma once

#include <string>
#include <vector>

#include "tools/cli/command_help.h"

namespace precast::tools {

/// Returns a script for bash that completes commands, options, and sections and keys of recipes.
/// For all other words, bash completes file names. The script needs no other package and starts no
/// program.
[[nodiscard]] std::string bash_completion(const std::vector<CommandHelp>& commands);

/// Returns the script for zsh. Users save it as `_precast` in a folder of $fpath, or source it
/// after compinit.
[[nodiscard]] std::string zsh_completion(const std::vector<CommandHelp>& commands);

}  // namespace precast::tools
