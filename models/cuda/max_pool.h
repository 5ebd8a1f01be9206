#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "models/cuda/bytes_moved.h"

// Max pool with a window of 3 x 3, stride 2 and padding 1, as after the first convolution of a
// ResNet. Images are channels-last, [images, height, width, channels]; the result is [images,
// (height + 1) / 2, (width + 1) / 2, channels]. Includes no header of libtorch.
//
// As in torch, only one value of a window counts as its maximum and receives the gradient: the
// first of several equal maxima, or the last NaN if there are any. All functions are asynchronous
// on their stream and safe to call from several threads. Results do not depend on the GPU.

namespace precast::models {

/// Pointers to device memory; activations aligned to 16 bytes, argmax to 8. The images have fewer
/// than 2^32 values, because threads are numbered in 32 bits.
struct MaxPoolForward {
  const void* x = nullptr;
  void* y = nullptr;
  /// The position of the maximum in its window, 3 * row + column.
  std::uint8_t* argmax = nullptr;
};
void max_pool_forward(const MaxPoolShape& shape, const MaxPoolForward& call, cudaStream_t stream);

/// Pointers to device memory, as in MaxPoolForward.
struct MaxPoolBackward {
  const void* dy = nullptr;
  /// The gradient from a second consumer of the output, which is added to dy; nullptr: none.
  const void* dy_fork = nullptr;
  const std::uint8_t* argmax = nullptr;
  void* dx = nullptr;
};
void max_pool_backward(const MaxPoolShape& shape, const MaxPoolBackward& call, cudaStream_t stream);

}  // namespace precast::models
