#pragma once

#include <ATen/core/Tensor.h>

#include "framework/core/export.h"

namespace precast::models::detail {

/// The tensors of a batch norm in training mode, on the device of its input. All are float32 [C],
/// except num_batches_tracked: an int64 scalar, or undefined. The running statistics and the
/// counter are updated in place.
struct FusedNorm {
  at::Tensor weight, bias;
  at::Tensor running_mean, running_var;
  at::Tensor num_batches_tracked;
  double momentum = 0.1;
  double eps = 1e-5;
  bool relu = true;
};

/// A result that has two consumers, for example the branch and the shortcut of a block, as two
/// tensors with the same memory: autograd then passes both gradients to the op, which adds them
/// while it reads them. Neither tensor may be changed in place. Either may stay unused.
struct Forked {
  at::Tensor y, fork;
};

/// Whether this build has the kernels; false without CUDA.
[[nodiscard]] PRECAST_API bool has_fused_kernels();

/// Whether `tools/gpu_check run correctness` has passed on a GPU of this device's compute
/// capability: so far only 9.0, on an H200. False for a CPU and for a GPU that this host does not
/// have. A device without an index is the current GPU.
[[nodiscard]] PRECAST_API bool fused_kernels_tested_on(at::Device device);

/// Whether the fused ops support x: [N, C, H, W] on a GPU, channels-last, aligned to 16 bytes,
/// float32, float16 or bfloat16, with at least two values per channel and fewer than 2^32 values.
/// False in builds without CUDA.
[[nodiscard]] PRECAST_API bool can_fuse(const at::Tensor& x);

/// Computes norm(x) + residual, and with norm.relu its ReLU, as one op with the kernels of
/// models/cuda/batch_norm.h. The op can be differentiated once, in x, residual, weight and bias.
/// Its results differ from the reference, separate ops, by rounding: sums are float32, and only the
/// result and the gradients of x and residual are rounded to x's dtype. Does not wait for the
/// device, so a CUDA graph can record it.
/// @param residual has x's shape; undefined: nothing is added.
/// @return the result for two consumers, with x's shape, dtype and memory format.
/// @pre can_fuse(x)
[[nodiscard]] PRECAST_API Forked fused_norm(const at::Tensor& x, const at::Tensor& residual,
                                            const FusedNorm& norm);

}  // namespace precast::models::detail
