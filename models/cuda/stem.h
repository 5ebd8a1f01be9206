#pragma once

#include <cuda_runtime_api.h>

#include "models/cuda/bytes_moved.h"

// Prepares images for the first convolution of a ResNet, of 7 x 7 pixels with stride 2 and padding
// 3: 2 x 2 pixels become the channels of one ("space to depth"; also in MLPerf's ResNets for TPUs).
// A convolution of 4 x 4 with stride 1 and without padding then computes the same sums, with
// kernels that need 8 channels or more. Includes no header of libtorch.

namespace precast::models {

/// Pointers to device memory. The images x are channels-last; y is aligned to 16 bytes.
struct StemInput {
  const void* x = nullptr;
  void* y = nullptr;
};

/// y[n, i + 2, j + 2, 4 * (2 * a + b) + c] = x[n, 2 * i + a, 2 * j + b, c] for a and b in {0, 1}.
/// All other values, at the border and for channels that x lacks, are 0. Asynchronous on the stream
/// and safe to call from several threads.
/// @pre stem_values(shape) < 2^31
void stem_input(const StemShape& shape, const StemInput& call, cudaStream_t stream);

}  // namespace precast::models
