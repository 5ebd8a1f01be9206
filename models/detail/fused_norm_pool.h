#pragma once

#include <ATen/core/Tensor.h>

#include "framework/core/export.h"
#include "models/detail/fused_norm.h"

namespace precast::models::detail {

/// Computes max_pool(relu(norm(x))) with a window of 3 x 3, stride 2 and padding 1, as one op with
/// the kernels of models/cuda/norm_pool.h. The op can be differentiated once, in x, weight and
/// bias. Its results differ from the reference, separate ops, by rounding: only the result and the
/// gradient of x are rounded to x's dtype. The gradient of a window goes to its largest value
/// before rounding, whereas separate ops choose the first of several values that are equal after
/// rounding. Does not wait for the device, so a CUDA graph can record it.
/// @return [N, C, (H + 1) / 2, (W + 1) / 2] with x's dtype and memory format, for two consumers.
/// @pre can_fuse(x)
[[nodiscard]] PRECAST_API Forked fused_norm_pool(const at::Tensor& x, const FusedNorm& norm);

}  // namespace precast::models::detail
