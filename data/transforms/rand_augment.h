#pragma once

#include <memory>

#include "data/transforms/augmentation.h"
#include "data/transforms/transform.h"

namespace precast::data {

/// Returns the absolute value of an operation's magnitude at level `bin` of `bins`, from
/// torchvision's tables.
/// @param wide whether to use TrivialAugment's tables instead of RandAugment's.
[[nodiscard]] PRECAST_API double augmentation_magnitude(std::size_t operation, bool wide, int bin,
                                                        int bins, const PixelShape& shape);
/// Whether the sign of the operation's magnitude is random.
[[nodiscard]] PRECAST_API bool augmentation_is_signed(std::size_t operation);

/// Applies `num_ops` (2) random operations of strength `magnitude` (9) of `num_magnitude_bins`
/// (31), like torchvision.transforms.v2.RandAugment (Cubuk et al., "RandAugment", CVPR Workshops
/// 2020). Further options: interpolation (nearest, bilinear), fill ([0, 0, 0]). Operations that
/// move pixels also apply to masks.
[[nodiscard]] std::unique_ptr<Transform> make_rand_augment();
/// Applies one random operation of random strength, like
/// torchvision.transforms.v2.TrivialAugmentWide (Mueller and Hutter, "TrivialAugment", ICCV 2021).
/// Options: num_magnitude_bins (31), interpolation, fill.
[[nodiscard]] std::unique_ptr<Transform> make_trivial_augment();

}  // namespace precast::data
