#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "framework/api/model.h"
#include "framework/api/train_plan.h"

namespace precast::tools {

/// find_ignored_settings() and image_size_problem() build the model, run it on synthetic images on
/// the CPU, and draw from libtorch's default generator.

/// Finds settings of the plan that the model ignores; returns a message for each. Without this
/// check, a model that does not read ModelSpec::blurpool, batch_norm_ranks or ghost_batch_size
/// would silently train without these settings. The check runs the model: with BlurPool or ghost
/// batches its output must change, and with synchronised statistics it must request a sum over the
/// ranks. A setting that cannot be tested because the forward pass fails counts as applied.
/// @param sync_bn whether batch statistics must be synchronised.
[[nodiscard]] std::vector<std::string> find_ignored_settings(const ModelRegistry& models,
                                                             const TrainPlan& plan, bool sync_bn);

/// Whether the model is one of precast's own architectures and the batch has images with class
/// labels. Such a model needs no check.
[[nodiscard]] bool is_own_classifier(const ModelSpec& spec, const Batch& batch);

/// Runs a model in evaluation mode, with autocast for the plan's precision, and checks its output.
/// If is_own_classifier(), the model is not run and may be null, and the outputs are 0.
/// @param batch two synthetic samples of the fields that the recipe reads; targets may be missing.
/// @return the outputs.
/// @throws ConfigError if the model has no parameters, fails on the batch, or does not return a
/// floating-point tensor of shape [2, num_classes] (for class indices as targets) or [2, ...] (for
/// all others). Errors of the device are rethrown.
at::Tensor check_output(Model* model, const TrainPlan& plan, const Batch& batch);

/// Explains why the plan's model cannot work on images of one of these sizes (for example, a linear
/// layer after `flatten` fits only one size). Empty if it works on all sizes. An operation for
/// which libtorch has no CPU code counts as working.
[[nodiscard]] std::string image_size_problem(const ModelRegistry& models, const TrainPlan& plan,
                                             const std::set<std::int64_t>& sizes_px);

}  // namespace precast::tools
