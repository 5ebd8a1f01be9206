#include "tools/app/recipe_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "framework/core/error.h"
#include "tools/app/reserved_figures.h"
#include "tools/app/session.h"

namespace precast::tools {
namespace {

/// The default metrics for these targets.
std::vector<PartRequest> default_metrics(TargetKind targets) {
  const auto named = [](std::initializer_list<const char*> names) {
    std::vector<PartRequest> requests;
    for (const char* name : names) requests.push_back({name, {}, {}, "validation.metrics"});
    return requests;
  };
  switch (targets) {
    case TargetKind::class_index:
    case TargetKind::none:
      return {};
    case TargetKind::values:
      return named({"r2", "mse"});
    case TargetKind::multi_hot:
      return named({"map", "f1"});
    case TargetKind::class_mask:
      return named({"mean_iou", "per_class_accuracy"});
  }
  return {};
}

/// The spec of a metric. Unless the request sets the metric's option ignore_index, the option
/// becomes the class that the loss ignores.
PartSpec metric_spec(const PartRequest& request, const Recipe& recipe,
                     const MetricRegistry& metrics) {
  constexpr std::string_view kOption = "ignore_index";
  PartSpec spec{request.name, request.options, fmt::format("{}.{}", request.key, request.name)};
  const auto ignored = ignored_class(recipe);
  const bool has_options =
      spec.options.kind == ConfigNode::Kind::null || spec.options.kind == ConfigNode::Kind::map;
  if (!ignored || !has_options || spec.options.find(kOption) != nullptr) return spec;
  const auto part = metrics.create(request.name);
  Schema schema;
  part->options(schema);
  // The only negative number that metrics accept is -1. It also stands for other negative numbers
  // that a plug-in's loss may ignore, because metrics never count negative classes.
  if (schema.contains(kOption))
    spec.set(kOption, std::to_string(std::max<std::int64_t>(*ignored, -1)));
  return spec;
}

}  // namespace

std::vector<PartRequest> parse_part_list(const ConfigNode& list, std::string_view name,
                                         Diagnostics& diagnostics) {
  std::vector<PartRequest> requests;
  if (list.kind == ConfigNode::Kind::null) return requests;
  if (list.kind != ConfigNode::Kind::list) {
    diagnostics.error(list.origin, name, fmt::format("expected a list, got {}", list.text()));
    return requests;
  }
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const ConfigNode& node = list.items[i];
    const std::string key = fmt::format("{}[{}]", name, i);
    if (node.kind == ConfigNode::Kind::scalar) {
      requests.push_back({node.scalar, {}, node.origin, key});
    } else if (node.kind == ConfigNode::Kind::map && node.entries.size() == 1) {
      requests.push_back({node.entries[0].key, node.entries[0].value, node.origin, key});
    } else {
      diagnostics.error(node.origin, key,
                        fmt::format("expected a name or `name: {{options}}`, got {}", node.text()));
    }
  }
  return requests;
}

TargetKind target_kind_of(const PartSpec& spec, const LossRegistry& losses) {
  const std::unique_ptr<Loss> loss = losses.make(spec);
  return loss == nullptr ? TargetKind::class_index : loss->target_kind();
}

TargetKind targets_of(const PartSpec& loss, const LossRegistry& losses) {
  if (!losses.contains(loss.name)) return TargetKind::class_index;
  try {
    return target_kind_of(loss, losses);
  } catch (const ConfigError&) {
    return TargetKind::class_index;
  }
}

std::optional<std::int64_t> ignored_class(const Recipe& recipe) {
  const auto ignored = recipe.resolved.find("loss.ignore_index");
  if (ignored == recipe.resolved.end() || !ignored->is_number_integer()) return std::nullopt;
  return ignored->get<std::int64_t>();
}

void report_target_mismatch(const Recipe& recipe, const PartRequest& request, std::string_view kind,
                            Diagnostics& diagnostics) {
  // The user set this number and did not name a method, so the message is about the number.
  if (request.key == "training.label_smoothing") {
    diagnostics.error(
        request.origin, request.key,
        fmt::format("expected 0 with training.loss: {}, got {}. Label smoothing needs class labels",
                    recipe.loss.name, recipe.config.training.label_smoothing));
    return;
  }
  const std::string message =
      recipe.targets == TargetKind::none
          ? fmt::format(
                "expected a {} that needs no targets, because training.loss: {} reads none, got {}",
                kind, recipe.loss.name, request.name)
          : fmt::format(
                "expected a {} for targets of kind {}, which training.loss: {} reads, got {}", kind,
                name_of(recipe.targets), recipe.loss.name, request.name);
  diagnostics.error(request.origin, request.key, message);
}

void make_metrics(Recipe& recipe, const Registries& registries, Diagnostics& diagnostics) {
  constexpr std::string_view kKey = "validation.metrics";
  std::vector<std::string> names;
  if (recipe.targets == TargetKind::class_index) names = {"top_1", "top_5"};
  const ConfigNode& listed = recipe.config.validation.metrics;
  for (const PartRequest& request : listed.kind == ConfigNode::Kind::null
                                        ? default_metrics(recipe.targets)
                                        : parse_part_list(listed, kKey, diagnostics)) {
    try {
      Metrics::value_type metric =
          registries.metrics.make(metric_spec(request, recipe, registries.metrics));
      if (is_reserved_figure(metric->name())) {
        diagnostics.error(
            request.origin, request.key,
            fmt::format("expected a metric whose name is not a key of the log, summary.json, "
                        "`eval --json` or --result-json, got '{}' ({}). Change what its name() "
                        "returns",
                        metric->name(), request.name));
      }
      if (std::ranges::find(names, metric->name()) != names.end()) {
        diagnostics.error(
            request.origin, request.key,
            fmt::format(
                "expected a metric that is not yet reported, got '{}'. Remove it from the list",
                metric->name()));
      }
      if (!metric->accepts(recipe.targets))
        report_target_mismatch(recipe, request, "metric", diagnostics);
      names.push_back(metric->name());
      recipe.metrics.push_back(std::move(metric));
    } catch (const ConfigError& error) {
      diagnostics.error(request.origin, request.key, error);
    }
  }
}

BestMetric choose_best_metric(const Recipe& recipe, const Schema& schema,
                              Diagnostics& diagnostics) {
  constexpr std::string_view kKey = "validation.best_metric";
  std::vector<BestMetric> figures;
  if (recipe.targets == TargetKind::class_index) figures = {{"top_1"}, {"top_5"}};
  for (const auto& metric : recipe.metrics)
    figures.push_back({metric->name(), metric->higher_is_better()});
  figures.push_back({"val_loss", /*higher_is_better=*/false});
  const std::string& requested = recipe.config.validation.best_metric;
  if (requested.empty()) return figures.front();
  const auto found = std::ranges::find(figures, requested, &BestMetric::name);
  if (found != figures.end()) return *found;
  std::vector<std::string> names;
  for (const BestMetric& figure : figures) names.push_back(figure.name);
  diagnostics.error(schema.origin(kKey), kKey,
                    fmt::format("expected one of {}, got '{}'", fmt::join(names, ", "), requested));
  return figures.front();
}

void report_ignored_tta(const Recipe& recipe, const Schema& schema, Diagnostics& diagnostics) {
  constexpr std::string_view kKey = "validation.lr_tta";
  if (!schema.given(kKey) || !recipe.config.validation.lr_tta || mirrors_images(recipe)) return;
  diagnostics.ignored(
      schema.origin(kKey), kKey,
      fmt::format("it has no effect with training.loss: {}, only with a loss for classes",
                  recipe.loss.name));
}

}  // namespace precast::tools
