#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/transforms/pipeline.h"
#include "framework/api/method.h"
#include "framework/api/train_plan.h"
#include "tools/app/registries.h"
#include "tools/app/train_config.h"

namespace precast::tools {

/// A configuration that was read and checked as a whole, before any dataset or device is touched.
struct Recipe {
  TrainConfig config;
  /// With the options that the recipe gives them; methods may change them in the plan.
  PartSpec loss, optimizer, schedule, order;
  /// In the order in which they act. The legacy keys come first, in a fixed order (blurpool,
  /// channels_last, progressive_resize, label_smoothing), then the recipe's `methods`.
  std::vector<NamedMethod> methods;
  /// Of validation.metrics.
  Metrics metrics;
  data::Pipeline train_pipeline;
  data::Pipeline val_pipeline;
  /// Every key with its value, then the expanded methods.
  nlohmann::ordered_json resolved;
  /// Warnings for a run of one rank: given keys that only several ranks read. How many there are is
  /// known once they have met.
  std::vector<std::string> unread_by_one_rank;
};

/// What a recipe is read for.
enum class RecipeUse {
  train,
  /// Evaluation and predictions: no image has a size of the training.
  evaluate,
};

/// What a key is that nothing in the resolved recipe reads, such as an option of another optimiser.
enum class UnreadKeys { error, warning };

/// Reads a YAML file and overrides (precedence: command line, file, default).
/// @param path empty: defaults and overrides alone. Warnings are printed.
/// @param registries gets the parts of the recipe's `plugins`, which are loaded first: once a
/// process, since their names are then taken.
/// @throws ConfigError with every mistake, one line each; IoError if the file cannot be read; as
/// PluginFile.
[[nodiscard]] Recipe load_recipe(const std::string& path, const std::vector<Override>& overrides,
                                 Registries& registries, RecipeUse use = RecipeUse::train,
                                 UnreadKeys unread = UnreadKeys::error);

/// What the recipe means for a training set of that many samples; the methods have edited it.
/// @param samples 0: unknown; the plan then has no steps.
[[nodiscard]] TrainPlan make_plan(const Recipe& recipe, const Registries& registries,
                                  std::int64_t samples, std::int64_t num_classes);

/// The plan as JSON. @param per_step adds the learning rate of every step.
[[nodiscard]] nlohmann::ordered_json describe_plan(const Recipe& recipe, const TrainPlan& plan,
                                                   bool per_step);

/// All keys, for --help.
[[nodiscard]] std::string recipe_help(const Registries& registries);

}  // namespace precast::tools
