#pragma once

#include <ATen/core/Tensor.h>

#include "framework/core/export.h"
#include "framework/core/registry.h"

namespace precast {

/// How far logits are from labels.
class PRECAST_API Loss {
 public:
  virtual ~Loss() = default;
  /// @param logits [N, classes] float. @param labels [N] int64, or [N, classes] float
  /// (probabilities).
  /// @return scalar float32: the mean over the batch.
  [[nodiscard]] virtual at::Tensor operator()(const at::Tensor& logits,
                                              const at::Tensor& labels) const = 0;
  /// The loss of each sample: [N] float32, whose mean is the above. Unless a loss knows better it
  /// is called once for each sample.
  [[nodiscard]] virtual at::Tensor per_sample(const at::Tensor& logits,
                                              const at::Tensor& labels) const;
};

/// What a recipe may tell a loss.
struct LossOptions {
  /// In [0, 1): the share of probability spread over all classes (Szegedy et al., CVPR 2016).
  double label_smoothing = 0;
  /// bce: the sum over classes instead of their mean.
  bool sum_classes = false;
  /// bce, 0 or more: a target above it counts as 1, any other as 0. Below 0: targets stay.
  double target_threshold = -1;
};

using LossRegistry = Registry<Loss, const LossOptions&>;

}  // namespace precast
