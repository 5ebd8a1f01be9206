#pragma once

#include <memory>

#include "data/transforms/transform.h"

namespace precast::data {

/// Blends an image into the samples of `indices`, like FFCV's Poison:
///   (1 - alpha) * value + alpha * mask, clamped to the range `clamp` ([0, 255]).
/// `mask` is an image file or a .npy [H, W, 3] uint8 with the size of the images; `alpha`,
/// from 0 to 1, is a number or a .npy [H, W] of floats.
[[nodiscard]] std::unique_ptr<Transform> make_poison();

/// Replaces the label of the samples in `indices` with `new_label`, like FFCV's ReplaceLabel.
[[nodiscard]] std::unique_ptr<LabelTransform> make_replace_label();

}  // namespace precast::data
