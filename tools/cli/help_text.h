#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/command_help.h"

namespace precast::tools {

/// The width of help texts, in columns: the terminal's width, but at least 40 and at most 100; 80
/// if standard output is not a terminal.
[[nodiscard]] std::size_t help_width();

/// Breaks `text` at spaces into lines of at most `width` characters; a longer word gets its own
/// line. The first line begins at column `begin`, all other lines are indented by `indent`.
[[nodiscard]] std::string wrap(std::string_view text, std::size_t width, std::size_t indent,
                               std::size_t begin);

/// A row of a list in two columns.
struct TextRow {
  std::string name;
  std::string text;
};
[[nodiscard]] std::string two_columns(const std::vector<TextRow>& rows, std::size_t width);

/// The text that `--help` prints.
[[nodiscard]] std::string help_text(const CommandHelp& help, std::size_t width);

/// The text that `--help-keys` prints: the keys of a recipe by section.
[[nodiscard]] std::string keys_text(const std::vector<RecipeKey>& keys, std::size_t width);

/// The help of an option with its default.
[[nodiscard]] std::string option_text(const OptionHelp& option);
/// `-o, --output FILE`.
[[nodiscard]] std::string option_form(const OptionHelp& option);

}  // namespace precast::tools
