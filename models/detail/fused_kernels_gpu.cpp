#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "models/detail/fused_kernels.h"
#include "models/detail/fused_norm.h"

namespace precast::models::detail {
namespace {

bool supports(const at::Tensor& x) {
  return x.is_cuda();
}

template <auto kKernels, typename Shape, typename Call>
void launch(const at::Tensor& on, const Shape& shape, const Call& call) {
  const c10::cuda::CUDAGuard device(on.device());
  kKernels(shape, call, c10::cuda::getCurrentCUDAStream(on.device().index()).stream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace

bool fused_kernels_tested_on(at::Device device) {
  if (!device.is_cuda()) return false;
  const c10::DeviceIndex gpus = c10::cuda::device_count();
  if (gpus == 0) return false;
  const c10::DeviceIndex index = device.has_index() ? device.index() : c10::cuda::current_device();
  if (index >= gpus) return false;
  const cudaDeviceProp* const gpu = at::cuda::getDeviceProperties(index);
  return gpu->major == 9 && gpu->minor == 0;
}

const FusedKernels* gpu_kernels() {
  static constexpr FusedKernels kKernels = {.supports = supports,
                                            .norm_mask_bytes = batch_norm_mask_bytes,
                                            .norm_workspace_bytes = batch_norm_workspace_bytes,
                                            .norm_forward = launch<batch_norm_forward>,
                                            .norm_backward = launch<batch_norm_backward>,
                                            .blur_forward = launch<blur_forward>,
                                            .blur_backward = launch<blur_backward>,
                                            .max_pool_forward = launch<max_pool_forward>,
                                            .max_pool_backward = launch<max_pool_backward>,
                                            .norm_pool_forward = launch<norm_pool_forward>,
                                            .norm_pool_backward = launch<norm_pool_backward>,
                                            .dual_norm_forward = launch<dual_norm_forward>,
                                            .dual_norm_backward = launch<dual_norm_backward>,
                                            .stem_input = launch<stem_input>};
  return &kKernels;
}

}  // namespace precast::models::detail
