#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace precast::recipes {

/// For each class, the number of samples or pixels that have this class (`actual`), that were
/// predicted as this class, and for which both are true (`correct`).
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

/// Counts each class in `predicted` and `actual`, two int64 tensors of the same shape. Ignores
/// elements whose actual class is not in [0, classes). @return [3 * classes] float64: correct,
/// predicted, actual
[[nodiscard]] at::Tensor count_classes(const at::Tensor& predicted, const at::Tensor& actual,
                                       std::int64_t classes);

/// Calls count_classes(); the predicted class is the one with the largest output. For
/// TargetKind::class_index and class_mask. @param ignore_index a class of the target that does not
/// count.
[[nodiscard]] at::Tensor count_best_classes(const at::Tensor& outputs, const at::Tensor& target,
                                            std::int64_t ignore_index);

}  // namespace precast::recipes
