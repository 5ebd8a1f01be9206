#pragma once

#include <string>
#include <vector>

#include "tools/cli/command_help.h"

namespace precast::tools {

/// The file name of the manual page of a command: `precast-bench-loader.1`; `precast.1` for an
/// empty name.
[[nodiscard]] std::string man_page_name(const std::string& command);

/// The manual page of a command, as roff. @param keys shown below the options; may be empty.
[[nodiscard]] std::string man_page(const CommandHelp& command, const std::vector<RecipeKey>& keys);

/// The manual page `precast(1)`, which lists the commands.
[[nodiscard]] std::string main_man_page(const std::vector<CommandHelp>& commands);

}  // namespace precast::tools
