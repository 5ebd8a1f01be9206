#pragma once

#include <string>
#include <vector>

#include "framework/core/config/schema.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// Origin::source of the values that a command line gives.
inline constexpr const char* kCommandLine = "command line";

/// The command line of a command that accepts a recipe: `[CONFIG.yaml] [--section.key=value ...]
/// [options]`.
/// The recipe can also be given as `--config-file CONFIG.yaml` (as in ffcv-imagenet's script).
class RecipeArguments {
 public:
  /// What the first argument can be.
  enum class Positional { recipe, run_or_recipe, recipe_or_dataset };
  /// @param command the command's name. @param about what the command does.
  RecipeArguments(const std::string& command, std::string about,
                  Positional positional = Positional::recipe);

  /// The options of the command itself.
  [[nodiscard]] Arguments& arguments() { return arguments_; }
  /// @return false if `--help` or `--help-keys` was given and has been printed. @param keys the
  /// keys of a recipe. @throws ConfigError
  [[nodiscard]] bool parse(const std::vector<std::string>& args, std::vector<RecipeKey> keys);
  /// The path of the recipe; empty if none was given. A dataset as the first argument becomes an
  /// override of data.train_dataset; the recipe can then be given as --config-file.
  [[nodiscard]] std::string config_path() const;
  [[nodiscard]] const std::vector<Override>& overrides() const { return overrides_; }

 private:
  /// Whether the first argument is a dataset.
  [[nodiscard]] bool names_dataset() const;

  /// The name of the first argument.
  std::string name_;
  Positional positional_kind_;
  Arguments arguments_;
  std::vector<Override> overrides_;
};

/// Moves the overrides out of `args`. An argument is an override if its name contains a dot and no
/// slash, or is `methods` or `plugins`: `--section.key=value`,
/// `--section.key value`, `section.key=value`. A separate value must not begin with `--`. Hyphens
/// in a key are read as underscores. A word without `--` that is the path of an existing file or
/// folder is not an override. @throws ConfigError if a value is missing or invalid.
[[nodiscard]] std::vector<Override> take_overrides(std::vector<std::string>& args);

}  // namespace precast::tools
