#pragma once

#include <memory>

#include "data/transforms/transform.h"

namespace precast::data {

/// Mirrors with `probability` (0.5), like FFCV's RandomHorizontalFlip and RandomVerticalFlip. If
/// the first transform of a pipeline is a horizontal flip, the resizer does it instead. @{
[[nodiscard]] std::unique_ptr<Transform> make_horizontal_flip();
[[nodiscard]] std::unique_ptr<Transform> make_vertical_flip();
/// @}

}  // namespace precast::data
