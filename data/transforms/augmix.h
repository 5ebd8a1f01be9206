#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "data/transforms/transform.h"

namespace precast::data {

/// AugMix (Hendrycks et al., ICLR 2020), as in Composer: each of `width` chains of `depth` random
/// operations changes its own copy of the image; the output is (1 - m) * image + m * (mean of the
/// copies with weights w), m ~ Beta(alpha, alpha), w ~ Dirichlet(alpha, ..., alpha). Like Composer
/// and torchvision, it leaves out the paper's Jensen-Shannon loss, which needs three views of each
/// image. Operations are those of rand_augment except Identity, with bilinear interpolation and
/// black outside the image; their strengths are Composer's. Sums are rounded to the nearest integer
/// (Composer truncates them). The output is a blend of copies whose pixels were moved in different
/// ways, so it cannot have a mask (`geometry_of`). Options, with their defaults: severity, 1 to 10
/// (3); depth, -1 for 1 to 3 at random (-1); width (3); alpha, above 0 (1); augmentation_set (all):
/// all, safe (without color, contrast, brightness and sharpness, which are corruptions of
/// ImageNet-C) or original (all, but with the strengths of the authors' code).
[[nodiscard]] std::unique_ptr<Transform> make_augmix();

/// Returns the magnitude for apply_augmentation() that gives an operation the strength that it has
/// in Composer's augmentation_primitives. @param draws uniform in [0, 1).
[[nodiscard]] PRECAST_API double augmix_magnitude(std::size_t operation, int severity,
                                                  bool original, std::array<double, 2> draws,
                                                  const PixelShape& shape);

/// Draws the weight m * w of each chain, in units of 1 / 65536.
[[nodiscard]] PRECAST_API std::vector<std::int32_t> augmix_weights(RandomStream& random,
                                                                   std::int64_t width,
                                                                   double alpha);

}  // namespace precast::data
