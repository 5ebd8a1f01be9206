#pragma once

#include <ATen/core/Tensor.h>

#include "framework/core/export.h"

namespace precast::models::detail {

/// Blurred images, and those of their pixels that are at even rows and columns.
struct Blurred {
  at::Tensor all, even;
};

/// The filter of BlurConv2d by the kernels of models/cuda/blur.h, as ops that are differentiable
/// once. The reference is the depthwise convolution, from which they differ by rounding. They do
/// not wait for the device, so a CUDA graph can record them.
/// @return x's shape (`even`: [N, C, (H + 1) / 2, (W + 1) / 2]), dtype and memory format.
/// @pre can_fuse(x), see fused_norm.h
[[nodiscard]] PRECAST_API at::Tensor fused_blur(const at::Tensor& x);
[[nodiscard]] PRECAST_API at::Tensor fused_blur_even(const at::Tensor& x);
/// fused_blur() and fused_blur_even() as one op, whose backward pass adds the two gradients.
[[nodiscard]] PRECAST_API Blurred fused_blur_both(const at::Tensor& x);

}  // namespace precast::models::detail
