#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "framework/core/float_type.h"
#include "recipes/cuda/stream.h"

// A step of SGD over all parameters, including the division of the gradients by the loss scale and
// their clipping, which otherwise take separate passes. Includes no header of CUDA or libtorch.
//
// Bytes read and written per parameter, with float32 gradients:
//   gradient_norm   4
//   sgd_step        20, or 12 without momentum
// Separate ops move 8 bytes to unscale, 12 to clip (4 for the norm, 8 for the product) and 20 for
// the step: 40 instead of 24, or 28 instead of 24 without clipping.
//
// The tensors' addresses are arguments of the kernels, kSgdMostTensors per launch, and not a table
// in device memory: nothing is copied to the device, and a CUDA graph keeps them.
//
// All functions are asynchronous on their stream and safe to call from several threads. Results do
// not depend on the GPU or on the order of blocks.

namespace precast::recipes {

/// A parameter and what belongs to it. The arrays are in device memory and have their elements in
/// the same order.
struct SgdTensor {
  float* parameter = nullptr;
  /// Only read.
  const void* gradient = nullptr;
  /// nullptr: without momentum.
  float* velocity = nullptr;
  std::int64_t count = 0;
  float weight_decay = 0;
  FloatType gradient_type = FloatType::f32;
};
using SgdTensors = std::span<const SgdTensor>;

inline constexpr std::size_t kSgdMostTensors = 192;
/// Elements of a tensor that a block updates.
inline constexpr std::int64_t kSgdChunkSize = 8192;

/// Pointers are to one value in device memory.
struct SgdStep {
  float lr = 0;
  /// In place of `lr`, so that a CUDA graph can be replayed with another rate; nullptr: none.
  const float* lr_on_device = nullptr;
  float momentum = 0;
  bool nesterov = false;
  /// Gradients are divided by it; nullptr: by 1.
  const float* grad_scale = nullptr;
  /// Gradients are then multiplied by it, as gradient_norm() writes it; nullptr: by 1.
  const float* clip = nullptr;
  /// Unless its value is 0, the step changes nothing; nullptr: 0.
  const float* found_inf = nullptr;
};

/// Like torch.optim.SGD (dampening 0), in float32:
///   g = gradient / grad_scale * clip + weight_decay * p;  v = momentum * v + g;  p -= lr * v
/// or, with Nesterov's momentum, p -= lr * (g + momentum * v).
void sgd_step(SgdTensors tensors, const SgdStep& step, cudaStream_t stream);

/// Pointers are to one value in device memory.
struct GradientNorm {
  /// Gradients are divided by it; nullptr: by 1.
  const float* grad_scale = nullptr;
  float max_norm = 1;
  /// The Euclidean norm of all gradients; nullptr: not written.
  float* norm = nullptr;
  /// min(1, max_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_; nullptr: not written.
  float* clip = nullptr;
  /// 1 if a gradient is infinite or NaN, else 0; nullptr: not written.
  float* found_inf = nullptr;
  /// gradient_norm_workspace_bytes() bytes, aligned to 8.
  void* workspace = nullptr;
};
[[nodiscard]] std::size_t gradient_norm_workspace_bytes(SgdTensors tensors);
/// Reads the gradients of the tensors only.
void gradient_norm(SgdTensors tensors, const GradientNorm& call, cudaStream_t stream);

/// Bytes that sgd_step() reads and writes, each counted once.
[[nodiscard]] std::size_t sgd_bytes(SgdTensors tensors);
/// Bytes of the gradients, which gradient_norm() reads.
[[nodiscard]] std::size_t gradient_bytes(SgdTensors tensors);

}  // namespace precast::recipes
