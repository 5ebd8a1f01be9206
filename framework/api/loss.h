#pragma once

#include <ATen/core/Tensor.h>

#include "framework/core/registry.h"

namespace precast {

/// How far logits are from labels.
class Loss {
 public:
  virtual ~Loss() = default;
  /// @param logits [N, classes] float. @param labels [N] int64, or [N, classes] float
  /// (probabilities).
  /// @return scalar float32: the mean over the batch.
  [[nodiscard]] virtual at::Tensor operator()(const at::Tensor& logits,
                                              const at::Tensor& labels) const = 0;
};

/// What a recipe may tell a loss.
struct LossOptions {
  /// In [0, 1): the share of probability spread over all classes (Szegedy et al., CVPR 2016).
  double label_smoothing = 0;
};

using LossRegistry = Registry<Loss, const LossOptions&>;

}  // namespace precast
