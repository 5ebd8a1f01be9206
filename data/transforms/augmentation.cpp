#include "data/transforms/augmentation.h"

#include <cmath>
#include <numbers>

#include "data/transforms/color.h"

namespace precast::data {
namespace {

using namespace augmentation;

AffineParameters affine_of(std::size_t operation, double magnitude, const PixelShape& shape) {
  AffineParameters parameters;
  constexpr double kDegrees = 180 / std::numbers::pi;
  if (operation == rotation) {
    parameters.angle = -magnitude;
  } else if (operation == translate_x || operation == translate_y) {
    parameters.translate[operation == translate_x ? 0 : 1] = std::trunc(magnitude);
  } else {
    // Shears about the upper left corner.
    parameters.center = {-0.5 * shape.width, -0.5 * shape.height};
    parameters.shear[operation == shear_x ? 0 : 1] = kDegrees * std::atan(magnitude);
  }
  return parameters;
}

}  // namespace

bool augmentation_moves(std::size_t operation) {
  return operation >= shear_x && operation <= rotation;
}

void apply_augmentation(const Pixels& image, std::size_t operation, double magnitude,
                        const AugmentationWarp& warp_options, std::span<std::byte> scratch) {
  if (augmentation_moves(operation)) {
    return warp(image, inverse_matrix(affine_of(operation, magnitude, image.shape)),
                warp_options.interpolation, warp_options.fill, scratch);
  }
  switch (operation) {
    case brightness:
      return adjust_brightness(image, 1 + magnitude);
    case color:
      return adjust_saturation(image, 1 + magnitude);
    case contrast:
      return adjust_contrast(image, 1 + magnitude);
    case sharpness:
      return adjust_sharpness(image, 1 + magnitude, scratch);
    case posterizing:
      return posterize(image, static_cast<int>(magnitude));
    case solarizing:
      return solarize(image, 255 * magnitude);
    case auto_contrast:
      return autocontrast(image);
    case equalizing:
      return equalize(image);
    default:
      return;
  }
}

}  // namespace precast::data
