#pragma once

#include <filesystem>
#include <string>

namespace precast::tools {

/// The metric that determines the best checkpoint of the recipe's runs, as far as it can be read
/// from the recipe file: validation.best_metric if it is set. Otherwise, for those of precast's
/// losses whose targets are not class indices: the first entry of validation.metrics (val_loss if
/// the list is empty), or the loss's first default metric if the key is missing. In all other cases
/// top_1. Errors in the file are ignored here; training reports them.
[[nodiscard]] std::string metric_of(const std::filesystem::path& recipe);

}  // namespace precast::tools
