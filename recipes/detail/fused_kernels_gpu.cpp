#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "recipes/detail/fused_kernels.h"

namespace precast::recipes::detail {
namespace {

bool supports(const at::Tensor& tensor) {
  return tensor.is_cuda();
}

template <auto kKernels, typename Shape, typename Call>
void launch(const at::Tensor& on, const Shape& shape, const Call& call) {
  const c10::cuda::CUDAGuard device(on.device());
  kKernels(shape, call, c10::cuda::getCurrentCUDAStream(on.device().index()).stream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace

const FusedKernels* gpu_kernels() {
  static constexpr FusedKernels kKernels = {
      .supports = supports,
      .cross_entropy_workspace_bytes = recipes::cross_entropy_workspace_bytes,
      .top_k_workspace_bytes = recipes::top_k_workspace_bytes,
      .gradient_norm_workspace_bytes = recipes::gradient_norm_workspace_bytes,
      .cross_entropy = launch<recipes::cross_entropy>,
      .count_top_k = launch<recipes::count_top_k>,
      .gradient_norm = launch<recipes::gradient_norm>,
      .sgd_step = launch<recipes::sgd_step>};
  return &kKernels;
}

}  // namespace precast::recipes::detail
