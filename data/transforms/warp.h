#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "data/image/pixels.h"
#include "framework/core/export.h"

namespace precast::data {

/// An affine map as in torchvision.transforms.functional.affine: rotation about `center` by `angle`
/// (degrees, clockwise), scaling, shear (degrees), then translation (pixels).
struct AffineParameters {
  double angle = 0;
  std::array<double, 2> translate = {0, 0};
  double scale = 1;
  std::array<double, 2> shear = {0, 0};
  /// (x, y) in pixels from the middle of the image.
  std::array<double, 2> center = {0, 0};
};

/// Maps a position in the output to one in the input, both in pixels from the middle of the image:
/// x' = m[0] x + m[1] y + m[2], y' = m[3] x + m[4] y + m[5].
using AffineMatrix = std::array<double, 6>;
[[nodiscard]] PRECAST_API AffineMatrix inverse_matrix(const AffineParameters& parameters);

enum class Interpolation { nearest, bilinear };

/// Moves pixels in place; areas outside the image become `fill`. With nearest, the result is
/// torchvision's, except where two pixels are equally near. With bilinear, `fill` is part of the
/// interpolation at the border, as in torchvision for fill 0. One or three channels.
/// @param scratch image.shape.values() bytes
PRECAST_API void warp(const Pixels& image, const AffineMatrix& matrix, Interpolation interpolation,
                      const std::array<std::uint8_t, 3>& fill, std::span<std::byte> scratch);

}  // namespace precast::data
