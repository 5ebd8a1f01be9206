// Replaces fused_kernels_gpu.cpp in builds without CUDA.
#include "recipes/detail/fused_kernels.h"

namespace precast::recipes::detail {

const FusedKernels* gpu_kernels() {
  return nullptr;
}

}  // namespace precast::recipes::detail
