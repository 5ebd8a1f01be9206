#pragma once

#include <ATen/core/Tensor.h>

#include "framework/core/export.h"

namespace precast::models::detail {

/// Blurred images: all pixels, and only the pixels at even rows and columns.
struct Blurred {
  at::Tensor all, even;
};

/// BlurConv2d's filter, computed by the kernels of models/cuda/blur.h, as ops that can be
/// differentiated once. The results differ from the reference, a depthwise convolution, by
/// rounding. The ops do not wait for the device, so a CUDA graph can record them.
/// @return a tensor with x's shape (`even`: [N, C, (H + 1) / 2, (W + 1) / 2]), dtype and memory
/// format.
/// @pre can_fuse(x), see fused_norm.h
[[nodiscard]] PRECAST_API at::Tensor fused_blur(const at::Tensor& x);
[[nodiscard]] PRECAST_API at::Tensor fused_blur_even(const at::Tensor& x);
/// fused_blur() and fused_blur_even() as one op, whose backward pass adds the two gradients.
[[nodiscard]] PRECAST_API Blurred fused_blur_both(const at::Tensor& x);

}  // namespace precast::models::detail
