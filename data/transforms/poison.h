#pragma once

#include <memory>

#include "data/transforms/transform.h"

namespace precast::data {

/// Blends a picture into the samples of `indices`: (1 - alpha) * value + alpha * mask, cut to
/// `clamp`
/// ([0, 255]): FFCV's Poison. `mask` is an image file or a .npy [H, W, 3] uint8 of the images'
/// size; `alpha` a number, or a .npy [H, W] of floats.
[[nodiscard]] std::unique_ptr<Transform> make_poison();

/// Replaces the integer of the samples of `indices` by `new_label`, like FFCV's ReplaceLabel.
[[nodiscard]] std::unique_ptr<LabelTransform> make_replace_label();

}  // namespace precast::data
