#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "framework/core/float_type.h"
#include "recipes/cuda/stream.h"

// A step of SGD for all parameters. It also divides the gradients by the loss scale and clips them;
// libtorch's ops need separate passes for this. Includes no header of CUDA or libtorch.
//
// Bytes read and written per parameter, with float32 gradients:
//   gradient_norm   4
//   sgd_step        20, or 12 without momentum
// Separate ops move 8 bytes to unscale, 12 to clip (4 for the norm, 8 for the product) and 20 for
// the step: 40 instead of 24, or 28 instead of 24 without clipping.
//
// The addresses of the tensors, up to kSgdMostTensors per launch, are arguments of the kernels, not
// a table in device memory. So nothing is copied to the device, and a CUDA graph records them.
//
// All functions are asynchronous on their stream and safe to call from several threads. Results do
// not depend on the GPU or on the order of blocks.

namespace precast::recipes {

/// A parameter, its gradient and its velocity. The arrays are in device memory and have their
/// elements in the same order.
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
/// The number of elements of one tensor that a block updates.
inline constexpr std::int64_t kSgdChunkSize = 8192;

/// Each pointer points to one value in device memory.
struct SgdStep {
  float lr = 0;
  /// Used instead of `lr`, so that a CUDA graph can be replayed with a different rate; nullptr:
  /// `lr` is used.
  const float* lr_on_device = nullptr;
  float momentum = 0;
  bool nesterov = false;
  /// Gradients are divided by this value; nullptr: by 1.
  const float* grad_scale = nullptr;
  /// The clipping factor from gradient_norm(), by which the divided gradients are multiplied.
  /// nullptr: 1.
  const float* clip = nullptr;
  /// If this value is not 0, the step changes nothing. nullptr: 0.
  const float* found_inf = nullptr;
};

/// Like torch.optim.SGD (dampening 0), in float32:
///   g = gradient / grad_scale * clip + weight_decay * p;  v = momentum * v + g;  p -= lr * v
/// or, with Nesterov's momentum, p -= lr * (g + momentum * v).
void sgd_step(SgdTensors tensors, const SgdStep& step, cudaStream_t stream);

/// Each pointer except `workspace` points to one value in device memory.
struct GradientNorm {
  /// Gradients are divided by this value; nullptr: by 1.
  const float* grad_scale = nullptr;
  float max_norm = 1;
  /// Receives the Euclidean norm of all divided gradients. nullptr: not written.
  float* norm = nullptr;
  /// Receives min(1, max_norm / (norm + 1e-6)), as in torch.nn.utils.clip_grad_norm_. nullptr: not
  /// written.
  float* clip = nullptr;
  /// Receives 1 if a gradient is infinite or NaN, else 0. nullptr: not written.
  float* found_inf = nullptr;
  /// gradient_norm_workspace_bytes() bytes, aligned to 8.
  void* workspace = nullptr;
};
[[nodiscard]] std::size_t gradient_norm_workspace_bytes(SgdTensors tensors);
/// Computes the results of `call`. Reads only the gradients of the tensors.
void gradient_norm(SgdTensors tensors, const GradientNorm& call, cudaStream_t stream);

/// Bytes that the launches of sgd_step() read and write. In each launch, a byte counts once if it
/// is read and once if it is written.
[[nodiscard]] std::size_t sgd_bytes(SgdTensors tensors);
/// The same for gradient_norm().
[[nodiscard]] std::size_t gradient_norm_bytes(SgdTensors tensors);

}  // namespace precast::recipes
