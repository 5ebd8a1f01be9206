#pragma once

#include <string>

#include "framework/core/config/node.h"
#include "framework/core/config/schema.h"

namespace precast::tools {

/// Reads the configuration of a command: a recipe in YAML or, if the name ends in `.json`, the
/// `params.json` of a run, which records every key with its value. A recorded configuration comes
/// back in the form of a recipe: in sections, and without the methods that one of its keys adds
/// (`training.use_blurpool` ...), so that overrides of these keys work as they do with a recipe.
/// @param path empty: an empty map. @throws IoError if the file cannot be read.
[[nodiscard]] ConfigNode read_config_file(const std::string& path, Diagnostics& diagnostics);

/// The part of read_config_file() that counts as given by the user: all of a recipe. Of a
/// `params.json`, the values that are not defaults, because the file does not say which of the
/// others the user wrote. Keys that this version does not have are left out with a warning.
[[nodiscard]] ConfigNode given_keys(const std::string& path, const ConfigNode& config,
                                    const Schema& schema);

}  // namespace precast::tools
