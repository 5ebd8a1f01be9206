#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>

#include "framework/core/export.h"
#include "recipes/cuda/cross_entropy.h"
#include "recipes/cuda/sgd.h"
#include "recipes/cuda/top_k.h"

namespace precast::recipes::detail {

/// The functions of recipes/cuda for one type of device (GPU or, in tests, the host). `on` is any
/// tensor of the call; it determines the device and its stream.
struct FusedKernels {
  template <typename Shape, typename Call>
  using Launch = void (*)(const at::Tensor& on, const Shape& shape, const Call& call);

  bool (*supports)(const at::Tensor& tensor);
  std::size_t (*cross_entropy_workspace_bytes)(const LogitsShape& shape);
  std::size_t (*top_k_workspace_bytes)(const LogitsShape& shape);
  std::size_t (*gradient_norm_workspace_bytes)(SgdTensors tensors);
  Launch<LogitsShape, CrossEntropyCall> cross_entropy;
  Launch<LogitsShape, TopKCall> count_top_k;
  Launch<SgdTensors, GradientNorm> gradient_norm;
  Launch<SgdTensors, SgdStep> sgd_step;
};

/// The kernels for GPUs; nullptr in builds without CUDA.
[[nodiscard]] PRECAST_API const FusedKernels* gpu_kernels();

/// The kernels that the fused ops call: those of gpu_kernels(), unless a test has replaced them.
[[nodiscard]] PRECAST_API const FusedKernels* fused_kernels();
/// Whether there are kernels for the tensor's device.
[[nodiscard]] bool has_fused_kernels_for(const at::Tensor& tensor);
/// Replaces the kernels, in tests that run kernels on the host or count calls. Not thread-safe.
/// `kernels` is borrowed.
PRECAST_API void set_fused_kernels(const FusedKernels* kernels);

}  // namespace precast::recipes::detail
