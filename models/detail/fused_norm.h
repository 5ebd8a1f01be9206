#pragma once

#include <ATen/core/Tensor.h>

namespace precast::models::detail {

/// The tensors of a batch norm in training mode, [C] each, float32. The running statistics are
/// updated in place.
struct FusedNorm {
  at::Tensor weight, bias;
  at::Tensor running_mean, running_var;
  double momentum = 0.1;
  double eps = 1e-5;
};

/// Whether fused_norm_relu() can compute this: x on a GPU (in kernels_test, on the host),
/// channels-last, float32, float16 or bfloat16, at least two values per channel; false in builds
/// without CUDA.
[[nodiscard]] bool can_fuse(const at::Tensor& x);

/// relu(norm(x) + residual) as one op, differentiable in x, residual, weight and bias, by the
/// kernels of models/cuda/batch_norm.h. The reference is the composition of the separate ops, from
/// which it differs by rounding: sums are float32, and only the result is rounded to x's dtype.
/// Does not wait for the device, so a CUDA graph can record it.
/// @param residual as x; undefined: nothing is added.
/// @pre can_fuse(x)
[[nodiscard]] at::Tensor fused_norm_relu(const at::Tensor& x, const at::Tensor& residual,
                                         const FusedNorm& norm);

}  // namespace precast::models::detail
