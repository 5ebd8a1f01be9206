#include "models/detail/fused_norm_device.h"

#include <c10/cuda/CUDAStream.h>

namespace precast::models::detail {

bool runs_kernels(const at::Tensor& x) {
  return x.is_cuda();
}

cudaStream_t stream_of(const at::Tensor& x) {
  return c10::cuda::getCurrentCUDAStream(x.device().index()).stream();
}

}  // namespace precast::models::detail
