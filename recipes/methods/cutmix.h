#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// CutMix (Yun et al., ICCV 2019), like torchvision.transforms.v2.CutMix: the same box of every
/// image of a batch is replaced by that of x[i - 1], and labels become probabilities [N, classes]
/// in proportion to the areas. The box has a share 1 - l of the area, l ~ Beta(alpha, alpha),
/// around a random centre, clipped at the border. Draws are a function of (seed, global step,
/// rank).
/// Options: alpha (1), probability (1: share of batches mixed).
/// Cost: one copy of the images.
[[nodiscard]] std::unique_ptr<Method> make_cutmix();

}  // namespace precast::recipes
