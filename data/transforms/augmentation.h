#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "data/image/pixels.h"
#include "data/transforms/warp.h"
#include "framework/core/export.h"

namespace precast::data {

/// The operations of RandAugment, TrivialAugment and AugMix, in torchvision's order.
inline constexpr std::array<std::string_view, 14> kAugmentations = {
    "Identity", "ShearX",   "ShearY",    "TranslateX", "TranslateY", "Rotate",       "Brightness",
    "Color",    "Contrast", "Sharpness", "Posterize",  "Solarize",   "AutoContrast", "Equalize"};

/// Indices into kAugmentations.
namespace augmentation {
enum Operation : std::size_t {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotation,
  brightness,
  color,
  contrast,
  sharpness,
  posterizing,
  solarizing,
  auto_contrast,
  equalizing
};
}  // namespace augmentation

/// Whether the operation moves pixels instead of changing their colours.
[[nodiscard]] bool augmentation_moves(std::size_t operation);

/// The settings of operations that move pixels.
struct AugmentationWarp {
  Interpolation interpolation = Interpolation::nearest;
  /// Colour outside the image.
  std::array<std::uint8_t, 3> fill{};
};

/// Applies one operation in place, as torchvision's RandAugment does. Thread-safe.
/// @param magnitude depends on the operation: tangent of the shear, shift in pixels, degrees
/// counter-clockwise, factor - 1, number of bits kept, or threshold / 255; ignored by operations
/// without a strength.
/// @param scratch image.shape.values() bytes
PRECAST_API void apply_augmentation(const Pixels& image, std::size_t operation, double magnitude,
                                    const AugmentationWarp& warp_options,
                                    std::span<std::byte> scratch);

}  // namespace precast::data
