#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// CutMix (Yun et al., ICCV 2019), like torchvision.transforms.v2.CutMix: in every image x[i] of a
/// batch, the same box is replaced by this box of x[i - 1], and labels become probabilities [N,
/// classes] in proportion to the areas. The box has a random centre and the fraction 1 - l of the
/// area, l ~ Beta(alpha, alpha), and is clipped at the border. If the model has several inputs, all
/// must be images; the box is scaled to the size of each input. With data.repeats, the
/// partner is further away (MixingMethod::partner_distance()). Draws are a function of (seed,
/// global step, rank).
/// Options: alpha (1), probability (1; the fraction of the batches that are mixed).
/// Cost: one copy of the images.
[[nodiscard]] std::unique_ptr<Method> make_cutmix();

}  // namespace precast::recipes
