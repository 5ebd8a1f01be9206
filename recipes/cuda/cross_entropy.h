#pragma once

#include <cstddef>
#include <cstdint>

#include "recipes/cuda/logits.h"
#include "recipes/cuda/stream.h"

// Cross entropy with label smoothing and its gradient. Includes no header of CUDA or libtorch.
//
// For 16-bit logits of X bytes in total, the kernels read and write 2 X bytes, or X without the
// gradient. Rows above 32 KiB (16,384 classes) are read two more times, or once more without the
// gradient; they are then usually in the L2 cache. Separate ops, which convert the logits to
// float32, move 24 X. Forward: conversion 3, log-softmax 4, smoothing 2. Backward: loss 2, adding
// the gradient of smoothing 4, log-softmax 6, conversion 3.
//
// All functions are asynchronous on their stream and safe to call from several threads. Results
// depend only on values and shapes, not on the GPU or on the order in which blocks run.

namespace precast::recipes {

/// Pointers to device memory; logits and their gradient aligned to 16 bytes.
struct CrossEntropyCall {
  const void* logits = nullptr;
  /// [rows]
  const std::int64_t* labels = nullptr;
  float label_smoothing = 0;
  /// Rows with this label do not count, and their gradient is 0. Any other label that is not a
  /// class makes the loss NaN.
  std::int64_t ignored_label = -100;

  /// Receives the mean loss, one value. nullptr: not written.
  float* loss = nullptr;
  /// Receives the gradient of the logits, in their shape and type. nullptr: not written.
  void* d_logits = nullptr;
  /// The gradient of the loss, one value. With a gradient scaler, it is the scale, so that small
  /// gradients survive the rounding to 16 bits. nullptr: 1.
  const float* d_loss = nullptr;
  /// cross_entropy_workspace_bytes() bytes, aligned to 4.
  void* workspace = nullptr;
};

[[nodiscard]] std::size_t cross_entropy_workspace_bytes(const LogitsShape& shape);
/// Bytes that the launches of a call read and write. Within a launch, each byte counts once.
[[nodiscard]] std::size_t cross_entropy_bytes(const LogitsShape& shape, bool gradient);

/// loss = mean over rows of -sum over classes of target * log softmax(logits), where the target is
/// 1 - label_smoothing for the label, plus label_smoothing / classes for every class. Equals
/// torch.nn.functional.cross_entropy of the logits in float32.
void cross_entropy(const LogitsShape& shape, const CrossEntropyCall& call, cudaStream_t stream);

}  // namespace precast::recipes
