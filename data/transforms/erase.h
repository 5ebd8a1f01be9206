#pragma once

#include <memory>

#include "data/transforms/transform.h"

namespace precast::data {

/// Fills a square of `crop_size` px, completely inside the image, with `fill` ([0, 0, 0]), like
/// FFCV's Cutout (in the original by DeVries and Taylor, 2017, the square may extend past the
/// border).
[[nodiscard]] std::unique_ptr<Transform> make_cutout();

/// With `probability` (0.5), fills a rectangle that covers a fraction `scale` ([0.02, 0.33]) of the
/// image and whose height / width is in `ratio` ([0.3, 3.3]). It is filled with `fill` ([0, 0, 0]),
/// or, if `noise_std` is above 0, with noise around `fill`. Like torchvision's RandomErasing (Zhong
/// et al., AAAI 2020), but before normalisation: `fill` and `noise_std` are in 0..255.
[[nodiscard]] std::unique_ptr<Transform> make_random_erasing();

}  // namespace precast::data
