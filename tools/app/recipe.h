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
  /// In the order in which they act. The legacy keys come first, in a fixed order (blurpool,
  /// channels_last, progressive_resize, label_smoothing), then the recipe's `methods`.
  std::vector<NamedMethod> methods;
  data::Pipeline train_pipeline;
  data::Pipeline val_pipeline;
  /// Every key with its value, then the expanded methods.
  nlohmann::ordered_json resolved;
};

/// What a recipe is read for.
enum class RecipeUse {
  train,
  /// Evaluation and predictions: no image has a size of the training.
  evaluate,
};

/// Reads a YAML file and overrides (precedence: command line, file, default).
/// @param path empty: defaults and overrides alone. Warnings are printed.
/// @param registries gets the parts of the recipe's `plugins`, which are loaded first: once a
/// process, since their names are then taken.
/// @throws ConfigError with every mistake, one line each; IoError if the file cannot be read; as
/// PluginFile.
[[nodiscard]] Recipe load_recipe(const std::string& path, const std::vector<Override>& overrides,
                                 Registries& registries, RecipeUse use = RecipeUse::train);

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
