#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "data/transforms/transform.h"

namespace precast::data {

/// Smooths [H, W, 3] pixels with a Gaussian of `kernel_size` x `kernel_size` taps and mirrored
/// borders, as torchvision.transforms.v2.functional.gaussian_blur does. Results are within 1 level
/// of torchvision's, which sums in two dimensions; this function sums along columns, then along
/// rows.
/// @param kernel_size odd, at most 255, and less than twice the image's shorter side.
/// @param scratch     blur_scratch_bytes() bytes
PRECAST_API void gaussian_blur(const Pixels& image, int kernel_size, double sigma,
                               std::span<std::byte> scratch);
[[nodiscard]] PRECAST_API std::size_t blur_scratch_bytes(const PixelShape& shape, int kernel_size);

/// gaussian_blur with a random sigma (Chen et al., "A simple framework for contrastive learning",
/// ICML 2020; torchvision's GaussianBlur). Options: kernel_size, sigma ([0.1, 2]), probability (1).
[[nodiscard]] std::unique_ptr<Transform> make_gaussian_blur();

}  // namespace precast::data
