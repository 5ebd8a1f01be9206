#pragma once

#include <memory>

#include "data/transforms/transform.h"

namespace precast::data {

/// Rotates counter-clockwise by a random angle within `degrees`, like torchvision's RandomRotation
/// without expand. Options: degrees, interpolation (nearest, bilinear), fill ([0, 0, 0]),
/// probability (1).
[[nodiscard]] std::unique_ptr<Transform> make_rotate();
/// torchvision's RandomAffine. Options: degrees, translate (fractions of width and height, [0, 0]),
/// scale ([1, 1]), shear ([low, high] along x, or [low x, high x, low y, high y], degrees),
/// interpolation, fill, probability.
[[nodiscard]] std::unique_ptr<Transform> make_affine();

}  // namespace precast::data
