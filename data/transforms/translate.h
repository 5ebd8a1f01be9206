#pragma once

#include <memory>

#include "data/transforms/transform.h"

namespace precast::data {

/// Moves every image at random by up to `padding` px in each direction and fills the uncovered area
/// with `fill` ([0, 0, 0]), like FFCV's RandomTranslate.
[[nodiscard]] std::unique_ptr<Transform> make_translate();
/// Like make_translate(), with a choice of border modes, like torchvision's RandomCrop(size,
/// padding) for images of that size. Options: padding, mode (constant, edge, reflect, symmetric),
/// fill ([0, 0, 0]).
[[nodiscard]] std::unique_ptr<Transform> make_pad_crop();

}  // namespace precast::data
