#pragma once

#include <memory>

#include "data/transforms/transform.h"

namespace precast::data {

/// A square of `crop_size` px, wholly inside every image, becomes `fill` ([0, 0, 0]): FFCV's Cutout
/// (DeVries and Taylor 2017, whose square may hang over the border).
[[nodiscard]] std::unique_ptr<Transform> make_cutout();

/// With `probability` (0.5) a rectangle of share `scale` ([0.02, 0.33]) and ratio ([0.3, 3.3])
/// becomes `fill` ([0, 0, 0]), or, if `noise_std` is above 0, noise around `fill`: torchvision's
/// RandomErasing (Zhong et al., AAAI 2020), before normalisation: `fill` and `noise_std` are in
/// 0..255.
[[nodiscard]] std::unique_ptr<Transform> make_random_erasing();

}  // namespace precast::data
