#pragma once

#include <string>
#include <vector>

#include "tools/cli/command_help.h"

namespace precast::tools {

/// docs/options.md: every option with its meaning and the commands that have it, and the old
/// spellings.
[[nodiscard]] std::string options_page(const std::vector<CommandHelp>& commands);

}  // namespace precast::tools
