#pragma once

#include <memory>

#include "data/transforms/transform.h"

namespace precast::data {

/// Random changes of colour; the arithmetic is in color.h.
///
/// Like FFCV's RandomBrightness, RandomContrast and RandomSaturation: with `probability` (0.5),
/// applies a factor drawn from U[max(0, 1 - magnitude), 1 + magnitude]. @{
[[nodiscard]] std::unique_ptr<Transform> make_brightness();
[[nodiscard]] std::unique_ptr<Transform> make_contrast();
[[nodiscard]] std::unique_ptr<Transform> make_saturation();
/// @}
/// With `probability` (0.5), applies a hue shift drawn from U[-magnitude, magnitude], at most half
/// a turn of the colour wheel.
[[nodiscard]] std::unique_ptr<Transform> make_hue();
/// torchvision's ColorJitter, with `probability` (1): the changes above, in random order, with the
/// magnitudes `brightness`, `contrast`, `saturation` and `hue` (each by default 0: no change).
[[nodiscard]] std::unique_ptr<Transform> make_color_jitter();

}  // namespace precast::data
