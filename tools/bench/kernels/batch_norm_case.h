#pragma once

#include "models/cuda/batch_norm.h"
#include "tools/bench/kernels/kernel_case.h"

namespace precast::tools {

/// The batch norm and ReLU at the end of a block in the first stage of ResNet-50: 256 images,
/// 56 x 56 px, 256 channels. @param residual whether to add the shortcut
/// @throws DeviceError
[[nodiscard]] KernelCase batch_norm_forward_case(models::ActivationType type, bool residual);
[[nodiscard]] KernelCase batch_norm_backward_case(models::ActivationType type, bool residual);
/// The same, fused with the norm of a projected shortcut. The backward case adds the gradients from
/// two consumers of the result.
[[nodiscard]] KernelCase dual_norm_forward_case(models::ActivationType type);
[[nodiscard]] KernelCase dual_norm_backward_case(models::ActivationType type);

}  // namespace precast::tools
