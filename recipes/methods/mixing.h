#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/api/batch.h"
#include "framework/api/method.h"
#include "framework/core/rng.h"

namespace precast::recipes {

/// The common part of the methods that mix samples. @{

/// The rules about the order of methods that use cut_mix().
[[nodiscard]] std::vector<MethodRule> cut_mix_rules();

/// Class indices [N] as probabilities [N, classes] float32; probabilities stay as they are.
[[nodiscard]] PRECAST_API at::Tensor class_probabilities(const at::Tensor& labels,
                                                         std::int64_t classes);

/// The rows shifted by one: row i is row i - 1, row 0 is the last one. This is each sample's
/// partner, as in FFCV and torchvision. Keeps the memory format.
[[nodiscard]] at::Tensor partners(const at::Tensor& rows);

/// MixUp of a batch whose labels are probabilities: images and labels become share * own + (1 -
/// share) * partner.
PRECAST_API void mix_up(Batch& batch, double share);
/// mix_up() with shares drawn from Beta(alpha, alpha). @param same_lambda whether to draw one per
/// batch instead of one per sample.
void mix_up(Batch& batch, RandomStream& random, double alpha, bool same_lambda);

/// CutMix of a batch whose labels are probabilities: the same box of every image is replaced by its
/// partner's, with the share 1 - `share` of the area, around column `x` and row `y`, clipped at the
/// border; labels follow the areas.
PRECAST_API void cut_mix(Batch& batch, double share, std::int64_t x, std::int64_t y);
/// cut_mix() with a share drawn from Beta(alpha, alpha) and a random centre.
void cut_mix(Batch& batch, RandomStream& random, double alpha);
/// @}

}  // namespace precast::recipes
