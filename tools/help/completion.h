#pragma once

#include <string>
#include <vector>

#include "tools/cli/command_help.h"

namespace precast::tools {

/// A script that makes bash complete commands, options, sections and keys of recipes; elsewhere
/// bash completes names of files. Needs no other package and starts no program.
[[nodiscard]] std::string bash_completion(const std::vector<CommandHelp>& commands);

/// The same for zsh: a file `_precast` in a folder of $fpath, or to source after compinit.
[[nodiscard]] std::string zsh_completion(const std::vector<CommandHelp>& commands);

}  // namespace precast::tools
