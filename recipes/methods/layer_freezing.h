#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Freezes layers during a run, beginning with the first ones (FreezeOut, Brock et al. 2017; SVCCA,
/// Raghu et al., NeurIPS 2017), like Composer's LayerFreezing. If the fraction t > freeze_start of
/// the run is done at the start of an epoch, the fraction freeze_level * (t - freeze_start) / (1 -
/// freeze_start) of the layers, rounded down, is frozen. The last layer and layers that
/// `training.freeze` has frozen do not count. A layer consists of the parameters whose names are
/// the same up to the last dot (`layer1.0.bn1`). The parameters of a frozen layer have no gradient,
/// so no optimiser changes them; its running statistics are still updated. Which layers are frozen
/// depends only on the epoch, so a resumed run freezes the same layers as an uninterrupted one;
/// Composer's method does not guarantee this.
/// Options: freeze_start, in [0, 1), default 0.5; freeze_level, in [0, 1], default 1.
/// With one rank, the backward pass skips frozen layers. With several ranks, it still computes
/// their gradients, which are then dropped before the optimiser's step.
[[nodiscard]] std::unique_ptr<Method> make_layer_freezing();

}  // namespace precast::recipes
