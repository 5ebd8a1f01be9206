#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/transforms/pipeline.h"
#include "framework/api/method.h"
#include "framework/api/metric.h"
#include "framework/api/train_plan.h"
#include "tools/app/dataset_check.h"
#include "tools/app/registries.h"
#include "tools/app/ring_dataset.h"
#include "tools/app/train_config.h"
#include "tools/cli/command_help.h"

namespace precast::tools {

/// A recipe that has been read and checked, as far as that is possible without using a device.
struct Recipe {
  TrainConfig config;
  /// The chosen parts with the options from the recipe; methods may change them in the plan.
  PartSpec loss, optimizer, schedule, order;
  /// The methods, in the order in which they are applied. Those that ffcv-imagenet's keys select
  /// come first, in a fixed order (blurpool, channels_last, progressive_resize, label_smoothing),
  /// then the recipe's `methods`.
  std::vector<NamedMethod> methods;
  /// The kind of target that the loss compares the outputs with; see task.h for its consequences.
  TargetKind targets = TargetKind::class_index;
  /// The metrics of validation.metrics, or the default ones for these targets.
  Metrics metrics;
  /// validation.best_metric
  BestMetric best;
  data::Pipeline train_pipeline;
  data::Pipeline val_pipeline;
  /// The datasets to train on and to evaluate on, with their locations in the recipe.
  std::vector<NamedDataset> datasets;
  /// The ring that `data.train_dataset: ring://NAME` names. `datasets` then contains the files
  /// whose batches are in the ring.
  RingDataset ring;
  /// Empty: training batches are loaded from `datasets`. Otherwise, the address of the program that
  /// makes them (outside_loading.h); `train_pipeline` is then a copy of `val_pipeline`, which
  /// determines the outputs.
  std::string outside;
  /// Every key with its value; `methods` has all methods, with all their options.
  nlohmann::ordered_json resolved;
  /// With UnreadKeys::warning, the keys that were given although nothing reads them. They do not
  /// include ffcv-imagenet's keys, because a recipe may contain any of those.
  std::vector<UnreadKey> unread_keys;
  /// Keys of the recipe that this run does not read, and that cause no errors, such as
  /// ffcv-imagenet's keys or a training.batch_size that training.global_batch_size replaces.
  std::vector<UnreadKey> ignored_keys;
  /// Keys that were given but are read only with several ranks. They are stored because the
  /// number of ranks is not known until the ranks have joined.
  std::vector<UnreadKey> unread_by_one_rank;
  /// The locations of all keys that were given, for errors that are found only after the dataset
  /// has been opened. The key "" is for the recipe itself.
  std::map<std::string, Origin, std::less<>> origins;

  /// False with training.eval_only: `train` then only evaluates the weights.
  [[nodiscard]] bool trains() const { return !config.training.eval_only; }
  /// Where the key was given; the recipe itself if it was not.
  [[nodiscard]] const Origin& origin_of(std::string_view key) const;
  /// @throws ConfigError `file:line:col: key: message`
  [[noreturn]] void refuse(std::string_view key, const std::string& message) const;
};

/// The purpose for which a recipe is read.
enum class RecipeUse {
  train,
  /// Evaluation and predictions, which read no training images.
  evaluate,
};

/// How to report a key that nothing in the resolved recipe reads, such as an option of another
/// optimiser.
enum class UnreadKeys { error, warning };

/// Reads a recipe's file, in YAML or as a run saved it (params.json), and overrides (precedence:
/// command line, file, default).
/// Warnings are printed. @param path empty: only defaults and overrides.
/// @param registries receives the parts of the recipe's `plugins`, which are loaded first. Do not
/// load the same plug-in twice into the same registries, because its names are then taken.
/// @throws ConfigError with every mistake, one per line; IoError if the file cannot be read; the
/// errors of PluginFile.
[[nodiscard]] Recipe load_recipe(const std::string& path, const std::vector<Override>& overrides,
                                 Registries& registries, RecipeUse use = RecipeUse::train,
                                 UnreadKeys unread = UnreadKeys::error);

/// All keys, for --help-keys: first those that are always read, then the options of the parts.
[[nodiscard]] std::vector<RecipeKey> recipe_help(const Registries& registries);

}  // namespace precast::tools
