#pragma once

#include "models/cuda/activation.h"
#include "tools/bench/kernels/kernel_case.h"

namespace precast::tools {

// Kernels on images and activations, at the sizes of a ResNet-18 with BlurPool at 160 px and
// batches of 1024.

/// The max pool after the first convolution. The backward case adds the gradients from two
/// consumers of the result.
[[nodiscard]] KernelCase max_pool_forward_case(models::ActivationType type);
[[nodiscard]] KernelCase max_pool_backward_case(models::ActivationType type);
/// The max pool, fused with the batch norm and the ReLU before it.
[[nodiscard]] KernelCase norm_pool_forward_case(models::ActivationType type);
[[nodiscard]] KernelCase norm_pool_backward_case(models::ActivationType type);
/// BlurPool's filter before the first 3 x 3 convolution with stride 2 and before the projection of
/// the same block.
[[nodiscard]] KernelCase blur_forward_case(models::ActivationType type);
[[nodiscard]] KernelCase blur_backward_case(models::ActivationType type);
/// Copies RGB images to images with four channels for the first convolution.
[[nodiscard]] KernelCase stem_case(models::ActivationType type);

}  // namespace precast::tools
