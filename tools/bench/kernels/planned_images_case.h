#pragma once

#include "data/torch/cuda/normalize.h"
#include "tools/bench/kernels/kernel_case.h"

namespace precast::tools {

/// Computes 1024 images of 224 x 224 px from random crops of stored images of 320 x 320 px, as
/// training with data.in_memory: gpu does. @throws DeviceError
[[nodiscard]] KernelCase planned_images_case(data::PixelType type);

}  // namespace precast::tools
