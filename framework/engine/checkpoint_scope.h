#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "framework/api/method.h"
#include "framework/api/model.h"
#include "framework/core/export.h"

namespace precast::engine {

/// Prepares a model with a checkpoint's weights for an evaluation like that of the run when it
/// saved the checkpoint: restores the methods whose state is in the checkpoint, and enters their
/// eval_scope() (ema and swa then swap in their averages).
/// @param methods those of the run's recipe; not used for anything else afterwards.
/// @param checkpoint a folder `ckpt-<step>`.
/// @return the scopes; the model has its own weights again when they are destroyed.
/// @throws CheckpointError if the state does not fit the methods or the model; IoError
[[nodiscard]] PRECAST_API std::vector<std::unique_ptr<Method::EvalGuard>> enter_checkpoint_scope(
    Model& model, const std::vector<NamedMethod>& methods, const std::filesystem::path& checkpoint);

}  // namespace precast::engine
