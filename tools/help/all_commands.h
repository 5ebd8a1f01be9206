#pragma once

#include <vector>

#include "tools/cli/command_help.h"

namespace precast::tools {

/// The descriptions of all commands, in the order of `precast --help`. Starts `precast` and, if it
/// is installed, `precast-train` once each. Without precast-train, the descriptions of its commands
/// have only a name and a summary. @throws Error if a program fails.
[[nodiscard]] std::vector<CommandHelp> all_commands();

/// The distinct first words of command names that have two words: `bench`, `new`.
[[nodiscard]] std::vector<std::string> command_groups(const std::vector<CommandHelp>& commands);

/// The keys of a recipe, from the first command that lists them; may be empty.
[[nodiscard]] std::vector<RecipeKey> all_keys(const std::vector<CommandHelp>& commands);

}  // namespace precast::tools
