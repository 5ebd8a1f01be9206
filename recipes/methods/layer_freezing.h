#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Freezes layers during a run, beginning with the first ones (FreezeOut, Brock et al. 2017; SVCCA,
/// Raghu et al., NeurIPS 2017), like Composer's LayerFreezing. At the start of an epoch, after the
/// fraction t of the run, the fraction freeze_level * (t - freeze_start) / (1 - freeze_start) of
/// all layers but the last is frozen, rounded down. A layer consists of the parameters that share a
/// name up to the last dot (`layer1.0.bn1`). The parameters of a frozen layer have no gradient, so
/// no optimiser changes them; its running statistics are still updated. Which layers are frozen
/// depends only on the epoch, so a resumed run freezes the same layers as an uninterrupted one;
/// Composer's method does not guarantee this.
/// Options: freeze_start, in [0, 1), default 0.5; freeze_level, in [0, 1], default 1.
/// Cost: none; saves the backward pass of frozen layers, except that with several ranks, or in CUDA
/// graphs that were recorded earlier, their gradients are still computed.
[[nodiscard]] std::unique_ptr<Method> make_layer_freezing();

}  // namespace precast::recipes
