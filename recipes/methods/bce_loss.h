#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Trains with binary cross entropy, one decision per class, instead of softmax cross entropy
/// (Beyer et al. 2020; Wightman et al., "ResNet strikes back", 2021). Sets the loss to `bce`
/// (losses/bce.h).
/// Options: sum_classes (default false): the sum over classes, like Composer's
/// binary_cross_entropy_with_logits and timm's --bce-sum, instead of the mean over classes, which
/// is timm's default.
/// target_threshold (default -1: none), timm's --bce-target-thresh: a target above it, after label
/// smoothing, counts as 1, any other as 0. It must be between the smoothed targets (losses/bce.h).
/// log_bias (default false): the biases of the last layer start at -log(classes), Composer's
/// LINEAR_LOG_CONSTANT_BIAS, so that each class starts with probability 1 / classes instead of 1/2
/// and the first losses are small; written into model.params.log_bias, which a model may reject.
/// configure() throws ConfigError if training.loss is neither `cross_entropy` (the default) nor
/// `bce`, if the recipe sets loss.sum_classes or loss.target_threshold to another value, or if
/// log_bias is true and the recipe sets model.params.log_bias.
/// Cost: negligible.
[[nodiscard]] std::unique_ptr<Method> make_bce_loss();

}  // namespace precast::recipes
