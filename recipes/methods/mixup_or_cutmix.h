#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Mixes each batch with MixUp or CutMix, chosen at random for each batch, like timm's Mixup in its
/// mode `batch` (--mixup, --cutmix, --mixup-prob, --mixup-switch-prob) and torchvision's
/// RandomChoice([MixUp, CutMix]), where both are equally likely. mixup.h and cutmix.h describe the
/// two; here, MixUp uses one mixing weight per batch. The partner is the preceding sample, as in
/// torchvision, or further away with data.repeats (MixingMethod::partner_distance()); timm uses the
/// reversed batch. Draws are a function of (seed, global step, rank).
/// Options: mixup_alpha (0.2), cutmix_alpha (1), both above 0; cutmix_share (0.5; the fraction of
/// the mixed batches that use CutMix); probability (1; the fraction of the batches that are mixed).
/// Cost: the cost of the chosen method.
[[nodiscard]] std::unique_ptr<Method> make_mixup_or_cutmix();

}  // namespace precast::recipes
