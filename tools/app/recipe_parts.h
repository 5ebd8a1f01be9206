#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/api/loss.h"
#include "framework/api/metric.h"
#include "framework/core/config/node.h"
#include "framework/core/config/schema.h"
#include "tools/app/recipe.h"

namespace precast::tools {

/// An entry of a list of parts: its name, its options, and its location in the file.
struct PartRequest {
  std::string name;
  ConfigNode options;
  Origin origin;
  /// For messages: `methods[1]`, or ffcv-imagenet's key that selects the part.
  std::string key;
};

/// Parses a list of parts, with entries such as `ema` or `ema: {decay: 0.999}`. @param name the key
/// of the list.
[[nodiscard]] std::vector<PartRequest> parse_part_list(const ConfigNode& list,
                                                       std::string_view name,
                                                       Diagnostics& diagnostics);

/// The kind of targets that a loss compares outputs with.
/// @throws the errors of PartRegistry::make()
[[nodiscard]] TargetKind target_kind_of(const PartSpec& spec, const LossRegistry& losses);
/// target_kind_of() for the recipe's loss; class_index for an invalid loss, which is reported
/// elsewhere.
[[nodiscard]] TargetKind targets_of(const PartSpec& loss, const LossRegistry& losses);

/// loss.ignore_index: the class of masks that the loss ignores; none if the loss has no such
/// option.
[[nodiscard]] std::optional<std::int64_t> ignored_class(const Recipe& recipe);

/// Reports a part that does not accept the targets of the recipe's loss. @param kind the kind of
/// part, such as "method".
void report_target_mismatch(const Recipe& recipe, const PartRequest& request, std::string_view kind,
                            Diagnostics& diagnostics);

/// Makes the metrics of validation.metrics, or the default ones for the recipe's targets. They
/// ignore the class that the loss ignores, unless validation.metrics sets their option
/// ignore_index.
void make_metrics(Recipe& recipe, const Registries& registries, Diagnostics& diagnostics);

/// validation.best_metric, or its default.
[[nodiscard]] BestMetric choose_best_metric(const Recipe& recipe, const Schema& schema,
                                            Diagnostics& diagnostics);

/// Warns if validation.lr_tta was given as true although the evaluation does not mirror images for
/// this loss. This is not an error, because ffcv-imagenet's recipes set the key.
void report_ignored_tta(const Recipe& recipe, const Schema& schema, Diagnostics& diagnostics);

}  // namespace precast::tools
