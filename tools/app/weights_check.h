#pragma once

#include "data/beton/reader.h"
#include "framework/api/model.h"
#include "framework/api/train_plan.h"
#include "framework/core/archive/weights_file.h"
#include "framework/core/archive/weights_spec.h"
#include "tools/app/recipe.h"

namespace precast::tools {

/// The purpose for which the weights of a file are loaded.
enum class WeightsUse {
  /// Training starts from the weights: class names and normalisation may differ, with a warning; a
  /// last layer for a different number of classes is replaced.
  train,
  /// Eval and predict: the outputs must have the same meaning.
  evaluate,
};

/// The model spec of this network's weights, for the files that a run writes and for
/// check_weights().
/// @param model built from the plan. @param data the dataset whose labels name the classes; null:
/// there are no names. @param use determines the pipeline with which `data` is read.
[[nodiscard]] WeightsSpec describe_weights(const Recipe& recipe, const TrainPlan& plan,
                                           const Registries& registries, const Model& model,
                                           const data::BetonReader* data,
                                           WeightsUse use = WeightsUse::train);

/// Compares the weights of `file` with the network that `expected` describes. If that network has
/// BlurPool, a file without a spec must have ffcv-imagenet's `blur_filter` tensors. Options of the
/// model that have no effect in evaluation, such as `zero_init_residual`, may differ.
/// @param strict `model.weights_check: on`; false: differences are only warnings. @param images
/// whether the network reads images; if not, normalisation is not compared, because earlier
/// versions recorded that of images.
/// @throws CheckpointError naming the file and all differences, with both values
void check_weights(const WeightsFile& file, const WeightsSpec& expected, WeightsUse use,
                   bool strict, bool images = true);

/// Compares the number of classes of `model.weights` with the number of class names of a dataset,
/// for eval and predict without model.num_classes. Weights with class names are skipped, because
/// check_weights() compares the names.
/// @throws CheckpointError naming both numbers; with `model.weights_check: off`, this is a warning
void check_class_count(const Recipe& recipe, const data::BetonReader& data);

/// Warns, in eval and predict, if `model.weights` has class names but a dataset with labels has
/// none, because its labels may then mean other classes.
/// @param classes the number of classes of the model.
void warn_of_unnamed_labels(const Recipe& recipe, const data::BetonReader& data,
                            std::int64_t classes);

/// Warns if `file` contains the plain weights of a checkpoint whose run evaluates averages (ema,
/// swa), or averages besides the weights that are used (averages_warning()).
void warn_of_averages(const WeightsFile& file);

/// The number of classes of the weights: from their model spec, else from the last layer if it has
/// torchvision's name, `fc`; 0 if unknown. @throws CheckpointError
[[nodiscard]] std::int64_t classes_of_weights(const WeightsFile& file);
/// Reads the file at `path` and returns its classes_of_weights().
/// @throws CheckpointError, IoError
[[nodiscard]] std::int64_t classes_of_weights(const std::string& path);

}  // namespace precast::tools
