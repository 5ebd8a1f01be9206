#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "models/cuda/activation.h"

// Batch norm in training mode, fused with the addition of a residual branch and ReLU. Activations
// are channels-last, that is, matrices [rows, channels] with rows = N * H * W; statistics,
// parameters and their gradients are float32. Includes no header of libtorch.
//
// Bytes read and written for activations of Y bytes of 16-bit values:
//   forward    3 Y: two reads, one write; with a residual 4 Y + Y/16
//   backward   5 Y: x and dy twice, dx once; with a residual 6 Y + Y/16; with a residual and a
//              second gradient (dy_fork) 7 Y + Y/16
// Separate ops of batch norm, addition and ReLU move 5 Y (8 Y) forward and 8 Y (9 Y) backward, and
// 3 Y for the sum of two gradients.
//
// Results depend on values and shapes only: neither on the GPU nor on the order of blocks. All
// functions are asynchronous on their stream and safe to call from several threads.

namespace precast::models {

struct BatchNormShape {
  /// N * H * W; at least 2
  std::int64_t rows = 0;
  int channels = 0;
  ActivationType type = ActivationType::f32;
};

/// Bytes of the ReLU mask that batch_norm_forward() writes if there is a residual: one bit per
/// value of a 16-bit type, in bytes of up to 8 values.
[[nodiscard]] std::size_t batch_norm_mask_bytes(const BatchNormShape& shape);
/// Bytes of device memory that a call uses for partial sums; aligned to 8 bytes.
[[nodiscard]] std::size_t batch_norm_workspace_bytes(const BatchNormShape& shape);

/// Bytes that a pass reads and writes for activations and masks, each counted once per kernel.
/// Partial sums, parameters and statistics are a few per cent more for small shapes.
[[nodiscard]] std::size_t batch_norm_forward_bytes(const BatchNormShape& shape, bool residual);
[[nodiscard]] std::size_t batch_norm_backward_bytes(const BatchNormShape& shape, bool residual,
                                                    bool fork = false);

/// Device memory; activations [rows, channels] aligned to 16 bytes, the others float32 [channels].
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
  /// Updated; the variance is the unbiased one, as in torch.nn.BatchNorm2d. nullptr: none.
  float* running_mean = nullptr;
  float* running_var = nullptr;

  void* y = nullptr;
  /// The batch's mean and 1 / sqrt(variance + eps), for the backward pass.
  float* mean = nullptr;
  float* inv_std = nullptr;
  /// Written if there are a residual and ReLU.
  std::uint8_t* mask = nullptr;
  void* workspace = nullptr;
};

/// y = max(0, (x - mean) / sqrt(variance + eps) * weight + bias + residual).
void batch_norm_forward(const BatchNormShape& shape, const BatchNormForward& call,
                        cudaStream_t stream);

/// Device memory, as above.
struct BatchNormBackward {
  const void* x = nullptr;
  const void* dy = nullptr;
  /// Added to dy, for outputs with two consumers; nullptr: none.
  const void* dy_fork = nullptr;
  const float* weight = nullptr;
  const float* bias = nullptr;
  const float* mean = nullptr;
  const float* inv_std = nullptr;
  bool relu = true;
  /// As written by the forward pass. nullptr: there was no residual, and the ReLU is computed again
  /// from x.
  const std::uint8_t* mask = nullptr;

  void* dx = nullptr;
  /// The residual's gradient; nullptr: there was none.
  void* d_residual = nullptr;
  float* d_weight = nullptr;
  float* d_bias = nullptr;
  void* workspace = nullptr;
};

void batch_norm_backward(const BatchNormShape& shape, const BatchNormBackward& call,
                         cudaStream_t stream);

}  // namespace precast::models
