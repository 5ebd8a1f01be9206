#pragma once

#include "framework/core/float_type.h"
#include "tools/bench/kernels/kernel_case.h"

namespace precast::tools {

/// Cross-entropy loss of logits with 1000 classes, for enough samples to exceed the L2 cache.
/// @param gradient whether to compute the gradient too @throws DeviceError
[[nodiscard]] KernelCase cross_entropy_case(FloatType type, bool gradient);
/// Top-5 accuracy of logits of the same shape. @throws DeviceError
[[nodiscard]] KernelCase top_k_case(FloatType type);

}  // namespace precast::tools
