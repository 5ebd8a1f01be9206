#pragma once

#include "framework/core/float_type.h"
#include "tools/bench/kernels/kernel_case.h"

namespace precast::tools {

/// Logits of 1000 classes, for as many samples as exceed the L2 cache.
/// @param gradient the loss and its gradient, or the loss alone @throws DeviceError
[[nodiscard]] KernelCase cross_entropy_case(FloatType type, bool gradient);
/// Top-1 and top-5 of such logits. @throws DeviceError
[[nodiscard]] KernelCase top_k_case(FloatType type);

}  // namespace precast::tools
