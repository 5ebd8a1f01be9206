#pragma once

#include <ATen/core/Tensor.h>
#include <cuda_runtime_api.h>

namespace precast::models::detail {

// Where fused kernels run: on GPUs, or on the host in tests.

[[nodiscard]] bool runs_kernels(const at::Tensor& x);
/// The current stream of x's device.
[[nodiscard]] cudaStream_t stream_of(const at::Tensor& x);

}  // namespace precast::models::detail
