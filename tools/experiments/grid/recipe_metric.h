#pragma once

#include <filesystem>
#include <string>

namespace precast::tools {

/// The figure that decides in the recipe's runs, as far as its file says: validation.best_metric,
/// else for one of precast's losses without class labels the first of validation.metrics, or of the
/// metrics that the loss has without that key; else top_1. Mistakes in the file count as nothing:
/// training reports them.
[[nodiscard]] std::string metric_of(const std::filesystem::path& recipe);

}  // namespace precast::tools
