#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "framework/core/float_type.h"

// A step of SGD over all parameters in one launch. It includes work that otherwise takes separate
// passes: the gradients' scale and clipping, the average of the weights (EMA), and the weights in
// 16 bits. Includes no header of libtorch.
//
// Bytes read and written per parameter, with float32 gradients:
//   sgd_step        20 (12 without momentum), 8 more for an average, 2 for weights in 16 bits
//   gradient_norm   4
// Separate ops move 8 bytes for the scale, 12 for clipping, 20 for the step, 12 for the average and
// 6 for weights in 16 bits: 58 in place of 34.
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
  /// Moved towards the updated parameter; nullptr: none.
  float* average = nullptr;
  /// Gets the updated parameter, rounded; nullptr: none.
  void* working = nullptr;
  std::int64_t count = 0;
  float weight_decay = 0;
  FloatType gradient_type = FloatType::f32;
  FloatType working_type = FloatType::f16;

  bool operator==(const SgdTensor&) const = default;
};

/// The part of a parameter that a block updates.
struct SgdChunk {
  std::int32_t tensor = 0;
  /// Its first element is number * kSgdChunkSize.
  std::int32_t number = 0;
};
inline constexpr std::int64_t kSgdChunkSize = 8192;

/// Every part of every parameter.
[[nodiscard]] std::vector<SgdChunk> sgd_chunks(std::span<const SgdTensor> tensors);

/// The parameters, and sgd_chunks() of them, in device memory.
struct SgdTable {
  const SgdTensor* tensors = nullptr;
  const SgdChunk* chunks = nullptr;
  int chunk_count = 0;
};

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
  /// Unless its value is 0, the step changes nothing, not even averages; nullptr: 0.
  const float* found_inf = nullptr;
  /// Weight of the previous average in the new one.
  float average_decay = 0;
};

/// As torch.optim.SGD (dampening 0), in float32:
///   g = gradient / grad_scale * clip + weight_decay * p;  v = momentum * v + g;  p -= lr * v
/// or, with Nesterov's momentum, p -= lr * (g + momentum * v). Then
///   average += (1 - average_decay) * (p - average);  working = p
void sgd_step(const SgdTable& table, const SgdStep& step, cudaStream_t stream);

/// Pointers are to one value in device memory.
struct GradientNorm {
  /// Gradients are divided by it; nullptr: by 1.
  const float* grad_scale = nullptr;
  float max_norm = 1;
  /// The Euclidean norm of all gradients of the table.
  float* norm = nullptr;
  /// min(1, max_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_.
  float* clip = nullptr;
  /// 1 if a gradient is infinite or NaN, else 0; nullptr: not written.
  float* found_inf = nullptr;
  /// gradient_norm_workspace_bytes() bytes, aligned to 8.
  void* workspace = nullptr;
};
[[nodiscard]] std::size_t gradient_norm_workspace_bytes(int chunk_count);
void gradient_norm(const SgdTable& table, const GradientNorm& call, cudaStream_t stream);

/// Bytes that sgd_step() reads and writes, each counted once.
[[nodiscard]] std::size_t sgd_bytes(std::span<const SgdTensor> tensors);
/// Bytes of the gradients, which gradient_norm() reads.
[[nodiscard]] std::size_t gradient_bytes(std::span<const SgdTensor> tensors);

}  // namespace precast::recipes
