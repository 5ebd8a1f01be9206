#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "framework/core/export.h"

namespace precast::recipes::detail {

/// Whether the fused ops support these tensors: logits [N, classes] on a GPU, contiguous, aligned
/// to 16 bytes, float32, float16 or bfloat16, not empty; labels [N] int64, contiguous, on the same
/// device. False in builds without CUDA.
[[nodiscard]] PRECAST_API bool can_fuse(const at::Tensor& logits, const at::Tensor& labels);

/// Computes at::cross_entropy_loss of the logits in float32, with label smoothing, as the mean over
/// the samples whose label is not -100. Uses the kernels of recipes/cuda/cross_entropy.h. Can be
/// differentiated once. The backward pass reads the logits again, because the gradient of the loss
/// (the gradient scaler's scale) is known only then. A label that is neither a class nor -100 makes
/// the loss NaN. Does not wait for the device, so a CUDA graph can record it.
/// @return scalar float32 @pre can_fuse(logits, labels)
[[nodiscard]] PRECAST_API at::Tensor fused_cross_entropy(const at::Tensor& logits,
                                                         const at::Tensor& labels,
                                                         double label_smoothing);

/// Counts the labels that are among the k largest logits of their row, with recipes/cuda/top_k.h.
/// Among equal logits, the lower class comes first. @return [1] float64 @pre can_fuse(logits,
/// labels); k >= 1
[[nodiscard]] PRECAST_API at::Tensor fused_top_k(const at::Tensor& logits, const at::Tensor& labels,
                                                 std::int64_t k);

}  // namespace precast::recipes::detail
