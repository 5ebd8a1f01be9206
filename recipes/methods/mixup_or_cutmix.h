#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Mixes each batch by either MixUp or CutMix, drawn for each batch: timm's Mixup in its mode
/// `batch` (--mixup, --cutmix, --mixup-prob, --mixup-switch-prob) and torchvision's
/// RandomChoice([MixUp, CutMix]), where both are equally likely. mixup.h (one mixing weight per
/// batch) and cutmix.h describe how each mixes; the partner is the preceding sample, as in
/// torchvision; timm uses the reversed batch. Draws are a function of (seed, global step, rank).
/// Options: mixup_alpha (0.2), cutmix_alpha (1), both above 0; cutmix_share (0.5: of the batches
/// that are mixed); probability (1: fraction of batches mixed).
/// Cost: one pass over the images, or one copy of them.
[[nodiscard]] std::unique_ptr<Method> make_mixup_or_cutmix();

}  // namespace precast::recipes
