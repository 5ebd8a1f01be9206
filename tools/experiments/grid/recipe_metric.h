#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/config/node.h"
#include "tools/experiments/grid/axis.h"

namespace precast::tools {

/// Returns the metric that determines the best checkpoint of the trials, according to the recipe
/// file and the keys that the sweep sets. It is validation.best_metric if that is set, otherwise
/// top_1. For precast's losses whose targets are not class indices, top_1 is replaced by the first
/// entry of validation.metrics (val_loss if the list is empty) or, if that key is missing, by the
/// loss's first default metric. Errors in the file are ignored here; training reports them.
/// @param axes take precedence over the recipe. If their values lead to different metrics, axes
/// with more than one value are ignored. @param zip the sweep's `zip`.
[[nodiscard]] std::string metric_of(const std::filesystem::path& recipe,
                                    const std::vector<SweepAxis>& axes, const ConfigNode& zip);

/// Returns the metric of runs with this loss (`training.loss`; empty: the default) whose recipe
/// lists no metrics: its first default metric, or top_1 for class indices and for losses of
/// plug-ins.
[[nodiscard]] std::string usual_metric(std::string_view loss);

/// Whether the log of a run contains this figure of summary.json for each epoch.
[[nodiscard]] bool is_per_epoch(std::string_view figure);

}  // namespace precast::tools
