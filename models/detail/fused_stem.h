#pragma once

#include <ATen/core/Tensor.h>

#include "framework/core/export.h"

namespace precast::models::detail {

/// Whether fused_stem() supports the images: [N, C, H, W] on a GPU, with at most 4 channels and
/// even sides, channels-last, float32, float16 or bfloat16, without a gradient. False in builds
/// without CUDA.
[[nodiscard]] PRECAST_API bool can_fuse_stem(const at::Tensor& images);

/// The convolution of 7 x 7 pixels with stride 2 and padding 3, computed from images that
/// models/cuda/stem.h has rearranged, as 4 x 4 pixels with stride 1. The sums are the same in
/// another order. Does not wait for the device, so a CUDA graph can record it.
/// @param weight [out, C, 7, 7]; autocast applies as to at::conv2d
/// @return [N, out, H / 2, W / 2]
/// @pre can_fuse_stem(images)
[[nodiscard]] PRECAST_API at::Tensor fused_stem(const at::Tensor& images, const at::Tensor& weight);

}  // namespace precast::models::detail
