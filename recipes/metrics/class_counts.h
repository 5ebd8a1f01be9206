#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace precast::recipes {

/// For each class, how often it was predicted, how often it was the target, and how often it was
/// both.
struct ClassCounts {
  /// Rows of [3, classes].
  std::span<const double> correct, predicted, actual;

  /// Borrows the memory of `counts`: [3 * classes] float64, contiguous, on the CPU.
  explicit ClassCounts(const at::Tensor& counts);
  [[nodiscard]] std::size_t classes() const { return correct.size(); }
  /// Number of samples (or pixels) that have class i or were predicted as class i.
  [[nodiscard]] double union_count(std::size_t i) const {
    return predicted[i] + actual[i] - correct[i];
  }
};

/// Counts predicted and actual classes, int64 tensors of the same shape; elements whose actual
/// class is not in [0, classes) are ignored. @return [3 * classes] float64: correct, predicted,
/// actual
[[nodiscard]] at::Tensor count_classes(const at::Tensor& predicted, const at::Tensor& actual,
                                       std::int64_t classes);

/// count_classes() of outputs for TargetKind::class_index or class_mask: the class with the largest
/// output. @param ignore_index a class of the target that does not count.
[[nodiscard]] at::Tensor count_best_classes(const at::Tensor& outputs, const at::Tensor& target,
                                            std::int64_t ignore_index);

}  // namespace precast::recipes
