#pragma once

#include <ATen/core/Tensor.h>

#include "recipes/optim/parameter_groups.h"

namespace precast::recipes {

/// Euclidean norm of each tensor, [n]. Stays on the device.
[[nodiscard]] at::Tensor norms_of(const Tensors& tensors);

/// Multiplies updates[i] by ratios[i], in place. If weight_norms[i] or update_norms[i] is 0, the
/// update stays unchanged, as both LARS and LAMB require. All norms and ratios are [n].
void scale_layerwise(const Tensors& updates, const at::Tensor& ratios,
                     const at::Tensor& weight_norms, const at::Tensor& update_norms);

}  // namespace precast::recipes
