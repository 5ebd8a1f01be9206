#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Each batch is mixed by MixUp or by CutMix, one of the two, drawn anew: timm's Mixup in its mode
/// `batch` (--mixup, --cutmix, --mixup-prob, --mixup-switch-prob) and torchvision's
/// RandomChoice([MixUp, CutMix]), whose two are as likely as each other. How either mixes is said
/// in mixup.h (one share a batch) and cutmix.h; the partner is the neighbour before, as in
/// torchvision, where timm takes the batch in reverse. A function of (seed, global step, rank).
/// Options: mixup_alpha (0.2), cutmix_alpha (1), both above 0; cutmix_share (0.5: of the batches
/// that are mixed); probability (1: share of batches mixed).
/// Cost: one pass over the images, or one copy of them.
[[nodiscard]] std::unique_ptr<Method> make_mixup_or_cutmix();

}  // namespace precast::recipes
