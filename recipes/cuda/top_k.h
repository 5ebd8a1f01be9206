#pragma once

#include <cstddef>
#include <cstdint>

#include "recipes/cuda/logits.h"
#include "recipes/cuda/stream.h"

// Counts how many labels are among the k largest logits, without sorting: a label is among them if
// fewer than k logits come before its logit. Includes no header of CUDA or libtorch.
//
// For logits of X bytes in total, the kernels read X bytes. torch.topk reads the logits several
// times (radix selection), writes k values and indices for each row and sorts them.
//
// All functions are asynchronous on their stream and safe to call from several threads.

namespace precast::recipes {

/// Pointers to device memory; logits aligned to 16 bytes.
struct TopKCall {
  const void* logits = nullptr;
  /// [rows]. A label that is not a class is never among the largest.
  const std::int64_t* labels = nullptr;
  /// At least 1. If there are at most k classes, all of them are among the largest.
  std::int64_t k = 1;
  /// Receives the result of count_top_k(), one value.
  double* count = nullptr;
  /// top_k_workspace_bytes() bytes, aligned to 4.
  void* workspace = nullptr;
};

[[nodiscard]] std::size_t top_k_workspace_bytes(const LogitsShape& shape);
/// Bytes that the launches of a call read and write. Within a launch, each byte counts once.
[[nodiscard]] std::size_t top_k_bytes(const LogitsShape& shape);

/// count = the number of rows whose label is among the k largest logits. The order is the same as
/// in torch.topk on a GPU: NaN is above all numbers, and among equal logits, the lower class comes
/// first.
void count_top_k(const LogitsShape& shape, const TopKCall& call, cudaStream_t stream);

}  // namespace precast::recipes
