#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Initialises the weights of the last norm in each residual block to 0, so that the block starts
/// as the identity (Goyal et al. 2017), like torchvision's zero_init_residual. Sets
/// model.params.zero_init_residual; the model implements it, or rejects it.
/// Options: none.
/// Cost: none.
[[nodiscard]] std::unique_ptr<Method> make_zero_init_residual();

}  // namespace precast::recipes
