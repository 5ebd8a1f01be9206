#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// MixUp (Zhang et al., ICLR 2018) on the device, like FFCV's ImageMixup, LabelMixup and
/// MixupToOneHot: images become l * x[i] + (1 - l) * x[i - 1], and labels become the same mixture
/// of probabilities [N, classes], where l ~ Beta(alpha, alpha). All inputs of the model, such as
/// several views, are mixed in this way, and must have a floating-point type. Pixels are mixed
/// after normalisation; if a sample and its partner have the same class, that class gets
/// probability 1 (in FFCV, less than 1). With data.repeats, the partner is further
/// away (MixingMethod::partner_distance()). Draws are a function of (seed, global step, rank).
/// Options: alpha (0.2), same_lambda (true: one l per batch; false: one per sample), probability
/// (1; the fraction of the batches that are mixed).
/// Cost: a copy of the inputs, and one pass over the inputs and the copy.
[[nodiscard]] std::unique_ptr<Method> make_mixup();

}  // namespace precast::recipes
