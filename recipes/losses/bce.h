#pragma once

#include <cstdint>
#include <memory>

#include "framework/api/loss.h"

namespace precast::recipes {

struct BceOptions {
  /// In [0, 1): the fraction of the probability spread over all classes (Szegedy et al., CVPR
  /// 2016).
  double label_smoothing = 0;
  /// Whether to sum over the classes instead of taking their mean.
  bool sum_classes = false;
  /// From 0 to below 1: a target above it counts as 1, any other as 0. Below 0: targets are
  /// unchanged. With label smoothing s and C classes, the targets of a class index are s / C and
  /// 1 - s + s / C. A threshold below s / C, or at or above 1 - s + s / C, would make all targets
  /// equal; make_plan() (tools/app/plan.h) rejects it.
  double target_threshold = -1;

  void options(Schema& schema);
  struct SmoothedTargets {
    /// The targets of the sample's class, and of every other class.
    double on, off;
  };
  [[nodiscard]] SmoothedTargets smoothed(std::int64_t classes) const {
    const double off = label_smoothing / static_cast<double>(classes);
    return {.on = 1 - label_smoothing + off, .off = off};
  }
};

/// Mean binary cross entropy of logits, like timm 1.0's BinaryCrossEntropy: one decision per class.
/// Class indices become probabilities first. All targets are then smoothed: the fraction
/// `label_smoothing` is spread evenly over all classes (timm does the same to mixed labels, in its
/// Mixup). Finally, `target_threshold`, if set, replaces them by 0 or 1. With `sum_classes`, the
/// loss is the sum over classes and the mean over samples (Composer's
/// binary_cross_entropy_with_logits). Computed in float32 whatever the dtype of the logits. Calls
/// throw std::logic_error for shapes or dtypes that framework/api/loss.h does not allow.
[[nodiscard]] std::unique_ptr<Loss> make_bce(const BceOptions& options);

}  // namespace precast::recipes
