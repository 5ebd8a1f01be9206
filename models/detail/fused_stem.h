#pragma once

#include <ATen/core/Tensor.h>

#include "framework/core/export.h"

namespace precast::models::detail {

/// Whether stem_images() supports the images: [N, 3, H, W] on a GPU, channels-last, float32,
/// float16 or bfloat16, without a gradient. False in builds without CUDA.
[[nodiscard]] PRECAST_API bool can_fuse_stem(const at::Tensor& images);

/// The images with a fourth channel of zeros, from the kernel of models/cuda/stem.h. Does not wait
/// for the device, so a CUDA graph can record it.
/// @return [N, 4, H, W], with the dtype and memory format of the images
/// @pre can_fuse_stem(images)
[[nodiscard]] PRECAST_API at::Tensor stem_images(const at::Tensor& images);

/// The weights of a convolution for stem_images().
/// @param weight [out, 3, height, width]
/// @return [out, 4, height, width], channels-last
[[nodiscard]] PRECAST_API at::Tensor stem_weight(const at::Tensor& weight);

}  // namespace precast::models::detail
