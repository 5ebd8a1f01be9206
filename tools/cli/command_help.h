#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace precast::tools {

/// A positional argument of a command.
struct ArgumentHelp {
  std::string name;
  std::string help;
  bool optional = false;
  /// Whether the argument can have several values; only for the last argument.
  bool list = false;
};

struct OptionHelp {
  /// Without `--`: `batch-size`, `image.max_resolution`.
  std::string name;
  /// `o` for `-o`; usually empty.
  std::string letter;
  /// The placeholder of its value: `N`, `FILE`; empty for a switch.
  std::string value;
  /// The default as a user would write it; empty: none.
  std::string default_text;
  /// The help text. The part up to the first semicolon is the option's meaning, which is the same
  /// in every command; details for this command follow it.
  std::string help;

  [[nodiscard]] std::string meaning() const { return help.substr(0, help.find(';')); }
};

struct Example {
  /// A command line that begins with `precast`.
  std::string command;
  /// A description of the example; may be empty.
  std::string about;
};

/// A key of a recipe.
struct RecipeKey {
  std::string name;
  std::string help;
  /// `integer, 1 to 4096` or the values that it can have: `auto|cpu|cuda`.
  std::string type;
  /// The default as it is written in a recipe.
  std::string value;
  bool required = false;
  /// `data.order: random` for a key that only this choice reads; empty: always read.
  std::string with;

  [[nodiscard]] std::string section() const { return name.substr(0, name.find('.')); }
};

/// The description of one command, for `--help`, the manual pages, the completions and
/// docs/options.md.
struct CommandHelp {
  /// `write`, `bench loader`.
  std::string name;
  /// The text after `usage: precast`.
  std::string usage;
  /// Its line in `precast --help`; empty unless it comes from the table of commands.
  std::string summary;
  /// One paragraph per line; lines that begin with two spaces are list entries.
  std::string about;
  std::vector<ArgumentHelp> arguments;
  std::vector<OptionHelp> options;
  std::vector<Example> examples;
  /// The exit codes that the command can return, in ascending order.
  std::vector<int> exit_codes;
  /// Whether the command accepts keys of a recipe as `--section.key=value`.
  bool takes_keys = false;
  /// The keys of a recipe, if this command lists them.
  std::vector<RecipeKey> keys;
};

/// Convert a description to the JSON object that `precast help --json` prints, and back. @{
[[nodiscard]] nlohmann::ordered_json help_json(const CommandHelp& help);
/// @throws nlohmann::json::exception for any other JSON.
[[nodiscard]] CommandHelp parse_help_json(const nlohmann::ordered_json& json);
/// @}

/// The meaning of an exit code, in a few words. @throws std::logic_error for an unknown code.
[[nodiscard]] const char* exit_code_meaning(int code);

}  // namespace precast::tools
