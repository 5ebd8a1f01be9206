#pragma once

#include <memory>

#include "framework/api/loss.h"
#include "recipes/detail/kernel_choice.h"

namespace precast::recipes {

struct CrossEntropyOptions : detail::KernelChoice {
  /// In [0, 1): the fraction of the probability spread over all classes (Szegedy et al., CVPR
  /// 2016).
  double label_smoothing = 0;

  void options(Schema& schema);
};

/// Mean cross entropy with label smoothing, like torch.nn.CrossEntropyLoss(label_smoothing=s): the
/// target keeps 1 - s of its probability, and s is spread evenly over all classes (Szegedy et al.,
/// CVPR 2016). Computed in float32 whatever the dtype of the logits. Calls throw std::logic_error
/// for shapes or dtypes that framework/api/loss.h does not allow. With `kernels: fused`,
/// detail::fused_cross_entropy() computes the mean loss for class indices if it supports the
/// tensors.
[[nodiscard]] std::unique_ptr<Loss> make_cross_entropy(const CrossEntropyOptions& options);

}  // namespace precast::recipes
