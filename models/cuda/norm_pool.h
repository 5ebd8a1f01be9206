#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "models/cuda/batch_norm.h"
#include "models/cuda/bytes_moved.h"

// Batch norm in training mode, ReLU, and max pool with a window of 3 x 3, stride 2 and padding 1,
// as after the first convolution of a ResNet. The tensors between these layers are the largest of a
// ResNet; these kernels never write them to memory. Layouts and guarantees are those of
// batch_norm.h and max_pool.h. Results differ from separate calls by rounding: gradients are not
// rounded between the layers, and the maximum of a window is its largest value before rounding. If
// the norm's weight is 0, all values of a window are equal, and its largest x receives the
// gradient. Includes no header of libtorch.

namespace precast::models {

/// Pointers to device memory; activations aligned to 16 bytes, argmax to 8.
struct NormPoolForward {
  /// The batch norm, with its input x [images, height, width, channels]. `y` is the result of the
  /// pool, [images, (height + 1) / 2, (width + 1) / 2, channels]. `relu` must be true; `residual`
  /// and `mask` must be null.
  BatchNormForward norm;
  /// x at the maximum of each window; has y's shape and type.
  void* largest = nullptr;
  /// The position of the maximum in its window, 3 * row + column.
  std::uint8_t* argmax = nullptr;
};
/// The workspace has batch_norm_workspace_bytes(norm_shape(shape)) bytes.
void norm_pool_forward(const MaxPoolShape& shape, const NormPoolForward& call, cudaStream_t stream);

/// Pointers to device memory, as in NormPoolForward.
struct NormPoolBackward {
  /// `dy` and `dy_fork` are gradients of the pool's result. `d_residual` and `mask` must be null.
  BatchNormBackward norm;
  const void* largest = nullptr;
  const std::uint8_t* argmax = nullptr;
};
/// The workspace has batch_norm_workspace_bytes(pooled_norm_shape(shape)) bytes.
void norm_pool_backward(const MaxPoolShape& shape, const NormPoolBackward& call,
                        cudaStream_t stream);

}  // namespace precast::models
