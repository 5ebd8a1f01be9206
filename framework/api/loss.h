#pragma once

#include <ATen/core/Tensor.h>

#include "framework/core/config/part.h"
#include "framework/core/export.h"

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

using LossRegistry = PartRegistry<Loss>;

}  // namespace precast
