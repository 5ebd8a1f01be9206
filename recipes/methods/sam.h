#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Sharpness-aware minimisation (Foret et al., ICLR 2021), like Composer's SAM: in every
/// `interval`-th step the gradient is computed twice, first at the weights w (gradient g), and then
/// at w + rho * g / (|g| + 1e-12). The second gradient is used to update w. As in Composer, each
/// rank uses its own gradient to compute this second point, and both passes update the running
/// statistics. If the first gradient is not finite, the second one is computed at w. The second
/// gradient determines whether the step is skipped.
/// Options: rho, 0 or more, default 0.05 (0: plain steps); interval, default 1.
/// Cost: a second forward and backward pass in each such step, and memory for a copy of the
/// weights.
[[nodiscard]] std::unique_ptr<Method> make_sam();

}  // namespace precast::recipes
