#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/config/node.h"
#include "framework/core/config/schema.h"

namespace precast::tools {

/// The side of the images of a recipe that does not set it, in px: for training
/// (resolution.min_res and resolution.max_res) and for evaluation (validation.resolution). @{
inline constexpr std::int64_t kDefaultTrainPx = 160;
inline constexpr std::int64_t kDefaultEvalPx = 224;
/// @}

/// A method for which ffcv-imagenet has keys in its configuration, and these keys.
struct KeyedMethod {
  std::string name;
  /// The key that enables the method if it is 1 or true; empty if there is none.
  std::string selector;
  /// Its options, each with the key that has the same value.
  std::vector<std::pair<std::string, std::string>> options;

  [[nodiscard]] std::vector<std::string> keys() const;
};
/// All such methods, in the order in which they are applied if their keys select them.
[[nodiscard]] const std::vector<KeyedMethod>& keyed_methods();

/// A recipe, or the params.json of a run, as read from its file.
struct RecipeFile {
  /// A map of sections: {data: {train_dataset: ...}, ...}.
  ConfigNode sections;
  /// Whether it is the params.json of a run, which records every key with its value.
  bool recorded = false;
};

/// Reads a recipe, in YAML, or the `params.json` of a run (a copy must also be named `.json`); in a
/// recipe, keys such as `lr.lr` at the top level are errors. A recorded configuration is converted
/// to the form of a recipe: in sections, and without the methods that keys such as
/// `training.use_blurpool` enable, so that overrides of these keys work as they do with a recipe.
/// If a method was recorded with options that differ from its keys, or after a method that no key
/// enables, the keys are left out instead.
/// @param path empty: an empty map. @throws IoError if the file cannot be read.
[[nodiscard]] RecipeFile read_recipe_file(const std::filesystem::path& path,
                                          Diagnostics& diagnostics);

/// The keys that count as given by the user. For a recipe, these are all its keys; for a recorded
/// configuration, those whose values differ from the defaults, because it does not record which of
/// the other keys the user wrote. Of a recorded configuration, logging.run_id and checkpoint.resume
/// are left out, because a training run with the same configuration is a new run; keys that this
/// version does not have are left out with a warning.
[[nodiscard]] ConfigNode given_keys(const RecipeFile& file, const Schema& schema);

}  // namespace precast::tools
