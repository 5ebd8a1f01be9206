#pragma once

#include <ATen/core/Tensor.h>

#include "framework/core/export.h"
#include "models/detail/fused_norm.h"

namespace precast::models::detail {

/// Computes relu(norm(x) + shortcut_norm(shortcut)) as one op with the kernels of
/// models/cuda/dual_norm.h. The op can be differentiated once, in x, shortcut, and the weights and
/// biases. Its results differ from the reference, separate ops, by rounding: sums are float32, and
/// only the result, the gradient of the sum and those of x and shortcut are rounded to x's dtype.
/// Does not wait for the device, so a CUDA graph can record it.
/// @param shortcut has x's shape, dtype and memory format.
/// @return the result for two consumers, with x's shape, dtype and memory format.
/// @pre can_fuse(x) and can_fuse(shortcut)
[[nodiscard]] PRECAST_API Forked fused_dual_norm(const at::Tensor& x, const FusedNorm& norm,
                                                 const at::Tensor& shortcut,
                                                 const FusedNorm& shortcut_norm);

}  // namespace precast::models::detail
