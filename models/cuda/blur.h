#pragma once

#include <cuda_runtime_api.h>

#include "models/cuda/bytes_moved.h"

// The filter of BlurPool: [1, 2, 1] x [1, 2, 1] / 16 on each channel, with zeros outside the image
// (models/detail/blur_conv.h). Images are channels-last, [images, height, width, channels]. A
// convolution with stride 2 and a 1x1 kernel reads only the pixels at even rows and columns,
// [images, (height + 1) / 2, (width + 1) / 2, channels]. Includes no header of libtorch.
//
// All functions are asynchronous on their stream and safe to call from several threads. Results do
// not depend on the GPU. The images have fewer than 2^32 values, because threads are numbered in 32
// bits.

namespace precast::models {

/// Pointers to device memory, aligned to 16 bytes.
struct BlurForward {
  const void* x = nullptr;
  /// Receive all blurred pixels (y), and only those at even rows and columns (y_even). Either may
  /// be nullptr.
  void* y = nullptr;
  void* y_even = nullptr;
};
void blur_forward(const BlurShape& shape, const BlurForward& call, cudaStream_t stream);

/// Pointers to device memory, aligned to 16 bytes.
struct BlurBackward {
  /// The gradients of y and of y_even. Either may be nullptr.
  const void* dy = nullptr;
  const void* dy_even = nullptr;
  void* dx = nullptr;
};
void blur_backward(const BlurShape& shape, const BlurBackward& call, cudaStream_t stream);

}  // namespace precast::models
