#pragma once

#include "recipes/cuda/sgd.h"
#include "tools/bench/kernels/kernel_case.h"

namespace precast::tools {

/// A step of all parameters of ResNet-50 with momentum; 16-bit gradients come with weights in the
/// same type. @param average with an average of the weights
/// @throws DeviceError
[[nodiscard]] KernelCase sgd_case(FloatType gradients, bool average);
/// The norm of all gradients of ResNet-50. @throws DeviceError
[[nodiscard]] KernelCase gradient_norm_case(FloatType gradients);

}  // namespace precast::tools
