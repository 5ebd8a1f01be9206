#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Gradient clipping by global norm (Pascanu et al., ICML 2013), like
/// torch.nn.utils.clip_grad_norm_: all gradients are multiplied by min(1, max_norm / (norm +
/// 1e-6)), where norm is the Euclidean norm over all gradients.
/// Options: max_norm, above 0; default 1.
/// Cost: reads each gradient twice and writes it once; nothing waits for the device.
[[nodiscard]] std::unique_ptr<Method> make_gradient_clipping();

}  // namespace precast::recipes
