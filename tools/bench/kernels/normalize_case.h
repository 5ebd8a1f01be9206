#pragma once

#include "data/torch/cuda/normalize.h"
#include "tools/bench/kernels/kernel_case.h"

namespace precast::tools {

/// Normalises four batches of 256 images of 224 x 224 px. @throws DeviceError
[[nodiscard]] KernelCase normalize_case(data::PixelType type);

}  // namespace precast::tools
