#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "framework/api/model.h"
#include "framework/api/train_plan.h"

namespace precast::tools {

/// find_unheeded() and find_unfit_size() make the model and run it on a made-up image on the CPU,
/// and draw from libtorch's default generator.

/// What the plan asks of its model and the model takes no notice of, one sentence each: a model
/// that reads neither ModelSpec::blurpool nor batch_norm_ranks would otherwise train without them
/// in silence. Found by trying: a model with BlurPool must answer otherwise than without, one with
/// synchronised statistics must ask the ranks. What cannot be tried (a forward pass that fails) is
/// taken for heeded.
/// @param sync_bn whether batch statistics are to be synchronised.
[[nodiscard]] std::vector<std::string> find_unheeded(const ModelRegistry& models,
                                                     const TrainPlan& plan, bool sync_bn);

/// Runs a model in evaluation mode on a batch. Does nothing for an architecture of precast's own
/// that gets images.
/// @param batch two made-up samples of what the recipe reads.
/// @throws ConfigError if the model has no parameters, fails on the batch, or its output is not
/// floating point, [2, num_classes] where the targets are classes, and else [2, ...].
void check_output(Model& model, const ModelSpec& spec, const Batch& batch);

/// Why the plan's model cannot work on images of one of these sizes: a linear layer behind
/// `flatten` knows one size. Empty: it works on all. What libtorch has no CPU code for is taken for
/// working.
[[nodiscard]] std::string find_unfit_size(const ModelRegistry& models, const TrainPlan& plan,
                                          const std::set<std::int64_t>& sizes_px);

}  // namespace precast::tools
