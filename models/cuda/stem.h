#pragma once

#include <cuda_runtime_api.h>

#include "models/cuda/bytes_moved.h"

// Appends a fourth channel of zeros to RGB images, for the first convolution of a network. cuDNN's
// kernels for few channels read four channels; given three, cuDNN makes a padded copy of the images
// in the forward pass and another one in the backward pass. Includes no header of libtorch.

namespace precast::models {

/// Pointers to device memory. The images x are channels-last; y is aligned to 16 bytes.
struct StemInput {
  const void* x = nullptr;
  void* y = nullptr;
};

/// y[pixel] = {x[pixel, 0], x[pixel, 1], x[pixel, 2], 0}. Asynchronous on the stream and safe
/// to call from several threads.
void stem_input(const StemShape& shape, const StemInput& call, cudaStream_t stream);

}  // namespace precast::models
