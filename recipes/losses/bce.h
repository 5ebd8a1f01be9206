#pragma once

#include <memory>

#include "framework/api/loss.h"

namespace precast::recipes {

/// Mean binary cross entropy of logits, as timm 1.0's BinaryCrossEntropy: one decision a class.
/// Class indices become probabilities; of both, the share label_smoothing is spread evenly over all
/// classes (timm smooths mixed labels alike, in its Mixup); then `target_threshold` makes them 0 or
/// 1. `sum_classes`: the sum over classes, mean over samples (Composer's
/// binary_cross_entropy_with_logits). Computed in float32 whatever the logits' type.
/// The call throws std::logic_error for shapes or types other than api::Loss names.
/// @throws ConfigError for label_smoothing outside [0, 1).
[[nodiscard]] std::unique_ptr<Loss> make_bce(const LossOptions& options);

}  // namespace precast::recipes
