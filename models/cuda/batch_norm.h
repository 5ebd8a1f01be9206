#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "models/cuda/bytes_moved.h"

// Batch norm in training mode, fused with the addition of a residual branch and ReLU. Activations
// are channels-last, that is, matrices [rows, channels] with rows = N * H * W; statistics,
// parameters and their gradients are float32. Includes no header of libtorch.
//
// Results depend only on values and shapes, not on the GPU or on the order in which blocks run. All
// functions are asynchronous on their stream and safe to call from several threads.

namespace precast::models {

/// Pointers to device memory: activations [rows, channels], aligned to 16 bytes; statistics and
/// parameters, float32 [channels].
struct BatchNormForward {
  const void* x = nullptr;
  /// Added after the norm; nullptr: no addition.
  const void* residual = nullptr;
  const float* weight = nullptr;
  const float* bias = nullptr;
  float eps = 1e-5F;
  /// Weight of the batch's statistics in the new running statistics.
  float momentum = 0.1F;
  bool relu = true;
  /// Updated in place, with the unbiased variance as in torch.nn.BatchNorm2d. nullptr: no running
  /// statistics.
  float* running_mean = nullptr;
  float* running_var = nullptr;
  /// Incremented by 1; nullptr: no counter.
  std::int64_t* num_batches_tracked = nullptr;

  void* y = nullptr;
  /// The batch's mean and 1 / sqrt(variance + eps), for the backward pass.
  float* mean = nullptr;
  float* inv_std = nullptr;
  /// The ReLU mask, batch_norm_mask_bytes() bytes. Written only with both a
  /// residual and `relu`; otherwise unused, and may be nullptr.
  std::uint8_t* mask = nullptr;
  /// batch_norm_workspace_bytes() bytes, aligned to 8.
  void* workspace = nullptr;
};

/// y = max(0, (x - mean) / sqrt(variance + eps) * weight + bias + residual); without `relu`, y is
/// the sum itself.
void batch_norm_forward(const BatchNormShape& shape, const BatchNormForward& call,
                        cudaStream_t stream);
/// The first part of batch_norm_forward(): computes `mean` and `inv_std`, and updates the running
/// statistics and `num_batches_tracked`.
void batch_norm_statistics(const BatchNormShape& shape, const BatchNormForward& call,
                           cudaStream_t stream);

/// Pointers to device memory, as in BatchNormForward.
struct BatchNormBackward {
  const void* x = nullptr;
  const void* dy = nullptr;
  /// The gradient from a second consumer of the output, which is added to dy; nullptr: none.
  const void* dy_fork = nullptr;
  const float* weight = nullptr;
  const float* bias = nullptr;
  const float* mean = nullptr;
  const float* inv_std = nullptr;
  bool relu = true;
  /// The mask that the forward pass wrote, if there are both a residual and a ReLU. With a ReLU but
  /// no residual it is nullptr, and the ReLU is computed again from x.
  const std::uint8_t* mask = nullptr;

  void* dx = nullptr;
  /// Receives the residual's gradient; nullptr: there was no residual.
  void* d_residual = nullptr;
  float* d_weight = nullptr;
  float* d_bias = nullptr;
  void* workspace = nullptr;
};

void batch_norm_backward(const BatchNormShape& shape, const BatchNormBackward& call,
                         cudaStream_t stream);
/// The first part of batch_norm_backward(): computes d_weight, d_bias and d_residual.
void batch_norm_gradient_sums(const BatchNormShape& shape, const BatchNormBackward& call,
                              cudaStream_t stream);

}  // namespace precast::models
