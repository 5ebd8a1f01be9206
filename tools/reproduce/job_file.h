#pragma once

#include <filesystem>
#include <vector>

#include "tools/trial/trial.h"

namespace precast::tools {

/// Checks that what lies in `folder` was trained by the recipes and keys of `trials`, and notes
/// those that are new (reproduce.json: trial -> hash of its recipe, keys). Keys that say where data
/// and runs lie may change.
/// @throws ConfigError naming the trial and what has changed; IoError.
void claim_folder(const std::filesystem::path& folder, const std::vector<Trial>& trials);

}  // namespace precast::tools
