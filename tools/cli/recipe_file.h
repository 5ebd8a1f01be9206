#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "framework/core/config/node.h"

namespace precast::tools {

/// A recipe's file.
struct RecipeFile {
  /// A map of sections: {data: {train_dataset: ...}, ...}.
  ConfigNode sections;
  /// Whether it is the params.json of a run: all keys are in it, flat and with their values at that
  /// time, and `methods` are all methods of the run, those of ffcv-imagenet's keys included.
  bool saved = false;
};

/// Reads a recipe, in YAML or as a run saved it. What only identifies a run (`plugins.xxh3`) is
/// left out. @throws IoError
[[nodiscard]] RecipeFile read_recipe_file(const std::filesystem::path& path,
                                          Diagnostics& diagnostics);

/// Removes the keys that have their default value, so that what a recipe did not give does not
/// count as given. @param defaults by flat key, as Schema::values().
void drop_defaults(ConfigNode& sections, const nlohmann::ordered_json& defaults);

}  // namespace precast::tools
