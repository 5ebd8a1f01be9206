#pragma once

#include <memory>

#include "framework/api/loss.h"

namespace precast::recipes {

struct CrossEntropyOptions {
  /// In [0, 1): the share of probability spread over all classes (Szegedy et al., CVPR 2016).
  double label_smoothing = 0;

  void options(Schema& schema);
};

/// Mean cross entropy with label smoothing, as torch.nn.CrossEntropyLoss(label_smoothing=s): the
/// target keeps 1 - s of its mass and s is spread evenly over all classes (Szegedy et al., CVPR
/// 2016). Computed in float32 whatever the logits' type.
/// The call throws std::logic_error for shapes or types other than api::Loss names.
[[nodiscard]] std::unique_ptr<Loss> make_cross_entropy(const CrossEntropyOptions& options);

}  // namespace precast::recipes
