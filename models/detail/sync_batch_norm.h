#pragma once

#include <ATen/core/Tensor.h>

#include "framework/api/communicator.h"
#include "framework/core/export.h"

namespace precast::models::detail {

/// The tensors that a training step of a batch normalisation over all ranks reads and updates.
struct SyncBatchNorm {
  /// [C] each.
  at::Tensor weight, bias;
  /// [C] each, updated in place; the variance is unbiased, as in torch.
  at::Tensor running_mean, running_var;
  double momentum = 0.1;
  double eps = 1e-5;
  /// Borrowed until the backward pass is over. Ranks may have different numbers of samples.
  Communicator* ranks = nullptr;
};

/// Normalises x [N, C, H, W] with the mean and variance over the samples of all ranks.
/// Differentiable in x, weight and bias: the gradient of x includes the effect of a sample on the
/// outputs of all ranks; the gradients of weight and bias are this rank's part, as GradSync expects
/// them. Runs one all-reduce in the forward pass and one in the backward pass.
/// @return the normalised x, with x's dtype and memory format.
///
/// Runs on any device, with statistics in float64. It is the reference for sync_batch_norm_cuda().
[[nodiscard]] PRECAST_API at::Tensor sync_batch_norm(const at::Tensor& x,
                                                     const SyncBatchNorm& norm);

/// sync_batch_norm() with libtorch's kernels for GPUs (those of torch.nn.SyncBatchNorm). Computes
/// the statistics in float32 by Welford's method and reads x without converting it (half stays
/// half). Does not wait for the device, so a CUDA graph can record it. Every rank must have at
/// least one sample.
[[nodiscard]] PRECAST_API at::Tensor sync_batch_norm_cuda(const at::Tensor& x,
                                                          const SyncBatchNorm& norm);

}  // namespace precast::models::detail
