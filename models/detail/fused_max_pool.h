#pragma once

#include <ATen/core/Tensor.h>

#include "framework/core/export.h"
#include "models/detail/fused_norm.h"

namespace precast::models::detail {

/// Max pool with a window of 3 x 3, stride 2 and padding 1, computed by the kernels of
/// models/cuda/max_pool.h, as an op that can be differentiated once. The values are those of
/// at::max_pool2d. If a window has several equal maxima, the first one gets the gradient. Does not
/// wait for the device, so a CUDA graph can record it.
/// @return [N, C, (H + 1) / 2, (W + 1) / 2] with x's dtype and memory format, for two consumers.
/// @pre can_fuse(x)
[[nodiscard]] PRECAST_API Forked fused_max_pool(const at::Tensor& x);

}  // namespace precast::models::detail
