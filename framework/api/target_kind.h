#pragma once

#include <string_view>

namespace precast {

/// What a task compares a model's outputs with. The loss declares it; the number of outputs, the
/// default metrics and all checks follow from it.
enum class TargetKind {
  /// The class of a sample: target [N] int64, outputs [N, classes].
  class_index,
  /// Numbers: target and outputs have the same shape; [N] counts as [N, 1], and one of the two may
  /// be flattened.
  values,
  /// Several classes of a sample: target [N, classes] of 0 and 1, outputs [N, classes].
  multi_hot,
  /// The class of each pixel: target [N, H, W] of an integer type, outputs [N, classes, H, W].
  class_mask,
  /// Nothing: the loss reads the outputs and the batch's inputs alone (two views of an image, an
  /// autoencoder). Outputs are [N, ...]; data.targets may name fields for metrics.
  none,
};

/// "class_index"
[[nodiscard]] constexpr std::string_view name_of(TargetKind kind) {
  constexpr std::string_view kNames[] = {"class_index", "values", "multi_hot", "class_mask",
                                         "none"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace precast
