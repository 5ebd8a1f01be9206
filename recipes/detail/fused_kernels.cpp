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

bool run_fused_kernels_on(const at::Tensor& tensor) {
  const FusedKernels* const kernels = fused_kernels();
  return kernels != nullptr && kernels->run_on(tensor);
}

void set_fused_kernels(const FusedKernels* kernels) {
  chosen_kernels() = kernels;
}

}  // namespace precast::recipes::detail
