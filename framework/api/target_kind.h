#pragma once

#include <string_view>

namespace precast {

/// The kind of target that a model's outputs are compared with. The loss declares it; it determines
/// the number of outputs, the default metrics, and the checks of the targets.
enum class TargetKind {
  /// The class of a sample: target [N] int64, outputs [N, classes].
  class_index,
  /// Numbers: target and outputs have the same shape, or one of the two is flattened to [N, K]. [N]
  /// counts as [N, 1].
  values,
  /// Any number of classes per sample: target [N, classes] of values from 0 to 1, outputs [N,
  /// classes].
  multi_hot,
  /// The class of each pixel: target [N, H, W] of an integer type, outputs [N, classes, H, W].
  class_mask,
  /// No target: the loss reads only the outputs and the batch's inputs (two views of an image, an
  /// autoencoder). Outputs are [N, ...]; data.targets may name fields for metrics.
  none,
};

/// The name of a kind, such as "class_index".
[[nodiscard]] constexpr std::string_view name_of(TargetKind kind) {
  constexpr std::string_view kNames[] = {"class_index", "values", "multi_hot", "class_mask",
                                         "none"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace precast
