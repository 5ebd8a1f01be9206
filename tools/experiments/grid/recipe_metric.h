#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/config/node.h"
#include "tools/experiments/grid/axis.h"

namespace precast::tools {

/// The metric that determines the best checkpoint of the trials, as far as the recipe file and the
/// keys that the sweep sets show it: validation.best_metric if it is set; otherwise top_1, except
/// for precast's losses whose targets are not class indices. For these it is the first entry of
/// validation.metrics (val_loss if the list is empty), or the loss's first default metric if the
/// key is missing. Errors in the file are ignored here; training reports them.
/// @param axes take precedence over the recipe. If their values lead to different metrics, axes
/// with more than one value are ignored. @param zip the sweep's `zip`.
[[nodiscard]] std::string metric_of(const std::filesystem::path& recipe,
                                    const std::vector<SweepAxis>& axes, const ConfigNode& zip);

/// Whether the log of a run has the figure of summary.json for each epoch, not only for the run.
[[nodiscard]] bool is_per_epoch(std::string_view figure);

}  // namespace precast::tools
