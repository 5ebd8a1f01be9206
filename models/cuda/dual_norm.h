#pragma once

#include <cuda_runtime_api.h>

#include "models/cuda/batch_norm.h"

// Two batch norms in training mode whose results are added, and ReLU: the end of a ResNet's block
// with a projection on its shortcut. The shortcut's normalised values are never written to memory,
// and both norms read the gradient of the sum in the same passes. Layouts, guarantees and results
// are those of batch_norm.h, except that the shortcut's normalised values are not rounded before
// the addition. Includes no header of libtorch.

namespace precast::models {

struct DualNormForward {
  /// `relu` must be true, and `residual` must be null. `y` and `mask` belong to the sum.
  BatchNormForward norm;
  /// The norm of the shortcut. `residual`, `relu`, `y` and `mask` are not used; the workspace may
  /// be the same as that of `norm`.
  BatchNormForward shortcut;
};
void dual_norm_forward(const BatchNormShape& shape, const DualNormForward& call,
                       cudaStream_t stream);

struct DualNormBackward {
  /// `relu` must be true, and `mask` must be the one that the forward pass wrote. `d_residual`
  /// receives the gradient of the sum.
  BatchNormBackward norm;
  /// Only its input, parameters, statistics, `dx`, `d_weight`, `d_bias` and workspace are used. Its
  /// workspace must not be that of `norm`.
  BatchNormBackward shortcut;
};
void dual_norm_backward(const BatchNormShape& shape, const DualNormBackward& call,
                        cudaStream_t stream);

}  // namespace precast::models
