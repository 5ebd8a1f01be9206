#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// MixUp (Zhang et al., ICLR 2018), as FFCV's ImageMixup, LabelMixup and MixupToOneHot, on the
/// device: images become l * x[i] + (1 - l) * x[i - 1], labels the same mixture of probabilities
/// [N, classes], l ~ Beta(alpha, alpha). Pixels are mixed as floats, after normalisation; a sample
/// and a partner of one class give that class all the mass (FFCV's loses some). A function of
/// (seed, global step, rank). Options: alpha (0.2), same_lambda (true: one l per batch; false: one
/// per sample), probability (1: share of batches mixed). Cost: one pass over the images.
[[nodiscard]] std::unique_ptr<Method> make_mixup();

}  // namespace precast::recipes
