#pragma once

#include <ATen/core/Tensor.h>

namespace precast::recipes {

/// Returns the targets of TargetKind::values in the shape of the outputs. @throws std::logic_error
/// unless the two have the same shape, or the same number of values per sample and one of them is
/// flattened ([N] or [N, n]).
[[nodiscard]] at::Tensor values_like(const at::Tensor& outputs, const at::Tensor& target);

/// Returns the classes of TargetKind::class_mask, [N, H, W] int64, for outputs [N, classes, H, W].
/// @throws std::logic_error for other shapes and types.
[[nodiscard]] at::Tensor pixel_classes(const at::Tensor& outputs, const at::Tensor& target);

/// Requires the shapes of TargetKind::multi_hot. @throws std::logic_error for others.
void require_multi_hot(const at::Tensor& outputs, const at::Tensor& target);

/// Requires the shapes and types of TargetKind::class_index. @throws std::logic_error for others.
void require_class_index(const at::Tensor& outputs, const at::Tensor& target);

}  // namespace precast::recipes
