#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Freezes layers in the course of a run, the first ones first (FreezeOut, Brock et al. 2017;
/// SVCCA, Raghu et al., NeurIPS 2017), as Composer's LayerFreezing. After the share t of a run, at
/// the start of an epoch, the share freeze_level * (t - freeze_start) / (1 - freeze_start) of all
/// layers but the last is frozen, rounded down. A layer is what shares a name up to the last dot
/// (`layer1.0.bn1`); frozen, its parameters have no gradient, so that no optimiser changes them,
/// and its batch statistics go on. Depends on the epoch alone: a resumed run freezes as one that
/// ran through, which Composer's does not promise. Options: freeze_start, in [0, 1), default 0.5;
/// freeze_level, in [0, 1], default 1. Cost: none; saves the backward pass of frozen layers, though
/// with several ranks, or replayed by a CUDA graph recorded before, gradients are still computed.
[[nodiscard]] std::unique_ptr<Method> make_layer_freezing();

}  // namespace precast::recipes
