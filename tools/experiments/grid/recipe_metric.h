#pragma once

#include <filesystem>
#include <string>

namespace precast::tools {

/// The metric that determines the best checkpoint of the recipe's runs, as far as the recipe file
/// shows it: validation.best_metric if it is set; otherwise top_1, except for precast's losses
/// whose targets are not class indices. For these it is the first entry of validation.metrics
/// (val_loss if the list is empty), or the loss's first default metric if the key is missing.
/// Errors in the file are ignored here; training reports them.
[[nodiscard]] std::string metric_of(const std::filesystem::path& recipe);

}  // namespace precast::tools
