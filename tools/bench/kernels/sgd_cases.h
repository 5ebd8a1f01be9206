#pragma once

#include "recipes/cuda/sgd.h"
#include "tools/bench/kernels/kernel_case.h"

namespace precast::tools {

/// One SGD step with momentum over all parameters of ResNet-50. @throws DeviceError
[[nodiscard]] KernelCase sgd_case(FloatType gradients);
/// The norm of all gradients of ResNet-50. @throws DeviceError
[[nodiscard]] KernelCase gradient_norm_case(FloatType gradients);

}  // namespace precast::tools
