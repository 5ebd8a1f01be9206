#pragma once

#include <memory>

#include "data/transforms/transform.h"

namespace precast::data {

/// Mirrors with `probability` (0.5), like FFCV's RandomHorizontalFlip and RandomVerticalFlip. A
/// horizontal flip directly after the crop is not one of these transforms: the resizer does it. @{
[[nodiscard]] std::unique_ptr<Transform> make_horizontal_flip();
[[nodiscard]] std::unique_ptr<Transform> make_vertical_flip();
/// @}

}  // namespace precast::data
