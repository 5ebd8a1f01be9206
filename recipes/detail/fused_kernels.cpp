#include "recipes/detail/fused_kernels.h"

namespace precast::recipes::detail {
namespace {

const FusedKernels*& chosen_kernels() {
  static const FusedKernels* kernels = gpu_kernels();
  return kernels;
}

}  // namespace

const FusedKernels* fused_kernels() {
  return chosen_kernels();
}

bool has_fused_kernels_for(const at::Tensor& tensor) {
  const FusedKernels* const kernels = fused_kernels();
  return kernels != nullptr && kernels->supports(tensor);
}

void set_fused_kernels(const FusedKernels* kernels) {
  chosen_kernels() = kernels;
}

}  // namespace precast::recipes::detail
