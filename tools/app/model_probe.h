#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "framework/api/model.h"
#include "framework/api/train_plan.h"

namespace precast::tools {

/// find_unheeded() and find_unfit_size() build the model, run it on a synthetic image on the CPU,
/// and draw from libtorch's default generator.

/// Finds settings of the plan that the model ignores; returns one sentence for each. A model that
/// reads none of ModelSpec::blurpool, batch_norm_ranks and ghost_batch_size would otherwise
/// silently train without them. The check runs the model: with BlurPool or ghost batches its output
/// must change, and with synchronised statistics it must request a sum over the ranks. A setting
/// that cannot be tried because the forward pass fails counts as applied.
/// @param sync_bn whether batch statistics must be synchronised.
[[nodiscard]] std::vector<std::string> find_unheeded(const ModelRegistry& models,
                                                     const TrainPlan& plan, bool sync_bn);

/// Whether the model is one of precast's own architectures, on images with class labels; such a
/// model needs no check.
[[nodiscard]] bool is_own_classifier(const ModelSpec& spec, const Batch& batch);

/// Runs a model in evaluation mode on a batch. Does nothing for is_own_classifier().
/// @param batch two synthetic samples of the fields that the recipe reads.
/// @throws ConfigError if the model has no parameters, fails on the batch, or its output is not
/// floating point, [2, num_classes] where the targets are class indices, and else [2, ...].
void check_output(Model& model, const ModelSpec& spec, const Batch& batch);

/// Explains why the plan's model cannot work on images of one of these sizes (for example, a linear
/// layer after `flatten` fits only one size). Empty if it works on all sizes. An operation for
/// which libtorch has no CPU code counts as working.
[[nodiscard]] std::string find_unfit_size(const ModelRegistry& models, const TrainPlan& plan,
                                          const std::set<std::int64_t>& sizes_px);

}  // namespace precast::tools
