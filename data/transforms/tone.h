#pragma once

#include <memory>

#include "data/transforms/transform.h"

namespace precast::data {

/// torchvision's RandomGrayscale, RandomSolarize and RandomPosterize; the arithmetic is in color.h.
/// @{
/// Options: probability (0.1).
[[nodiscard]] std::unique_ptr<Transform> make_grayscale();
/// Options: threshold (128), probability (0.5); FFCV's Solarization is the same.
[[nodiscard]] std::unique_ptr<Transform> make_solarize();
/// Options: bits, probability (0.5).
[[nodiscard]] std::unique_ptr<Transform> make_posterize();
/// @}

}  // namespace precast::data
