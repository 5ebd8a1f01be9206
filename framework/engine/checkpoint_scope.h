#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "framework/api/method.h"
#include "framework/api/model.h"
#include "framework/core/export.h"

namespace precast::engine {

/// Prepares a model, which already has a checkpoint's weights, for an evaluation with the same
/// result as in the run that saved the checkpoint. Restores the methods that have tensors in the
/// checkpoint, and calls their eval_scope(), in which ema and swa swap in their averages.
/// @param methods the methods of the run's recipe. Do not use them for anything else afterwards.
/// @param checkpoint a folder `ckpt-<step>`.
/// @return the scopes; the model has its own weights again when they are destroyed.
/// @throws CheckpointError if the state does not fit the methods or the model; IoError
[[nodiscard]] PRECAST_API std::vector<std::unique_ptr<Method::EvalGuard>> enter_checkpoint_scope(
    Model& model, const std::vector<NamedMethod>& methods, const std::filesystem::path& checkpoint);

}  // namespace precast::engine
