#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "models/cuda/bytes_moved.h"

// Max pool with a window of 3 x 3, stride 2 and padding 1, as after the first convolution of a
// ResNet. Images are channels-last, [images, height, width, channels]; the result is [images,
// (height + 1) / 2, (width + 1) / 2, channels]. Includes no header of libtorch.
//
// As in torch, the first of equal values of a window is its maximum, the last NaN if there is one,
// and only the maximum gets a gradient. All functions are asynchronous on their stream and safe to
// call from several threads. Results do not depend on the GPU.

namespace precast::models {

/// Device memory; activations aligned to 16 bytes, argmax to 8.
struct MaxPoolForward {
  const void* x = nullptr;
  void* y = nullptr;
  /// The position of the maximum in its window, 3 * row + column.
  std::uint8_t* argmax = nullptr;
};
void max_pool_forward(const MaxPoolShape& shape, const MaxPoolForward& call, cudaStream_t stream);

/// Device memory, as above.
struct MaxPoolBackward {
  const void* dy = nullptr;
  /// Added to dy, for outputs with two consumers; nullptr: none.
  const void* dy_fork = nullptr;
  const std::uint8_t* argmax = nullptr;
  void* dx = nullptr;
};
void max_pool_backward(const MaxPoolShape& shape, const MaxPoolBackward& call, cudaStream_t stream);

}  // namespace precast::models
