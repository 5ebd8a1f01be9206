#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "data/image/pixels.h"
#include "framework/core/export.h"

namespace precast::data {

/// Maps each of the 256 pixel values to its new value.
using ValueTable = std::array<std::uint8_t, 256>;

/// Colour operations with given parameters, in place on [H, W, 3] pixels. Brightness, contrast and
/// saturation are FFCV's (ffcv/transforms/color_jitter.py), all others are torchvision's
/// (transforms/v2/functional/_color.py); operations that both have give the same results up to
/// rounding. All results are within 1 level of torchvision's. Thread-safe. @{
PRECAST_API void apply_table(const Pixels& image, const ValueTable& table);
/// factor * value, clamped to 255.
PRECAST_API void adjust_brightness(const Pixels& image, double factor);
/// factor * value + (1 - factor) * the image's mean luminance.
PRECAST_API void adjust_contrast(const Pixels& image, double factor);
/// factor * value + (1 - factor) * the pixel's luminance.
PRECAST_API void adjust_saturation(const Pixels& image, double factor);
/// Shifts the hue. @param shift in turns of the colour wheel, [-0.5, 0.5].
PRECAST_API void adjust_hue(const Pixels& image, double shift);
/// Replaces all channels with the luminance.
PRECAST_API void to_grayscale(const Pixels& image);
/// Inverts the values that are at least `threshold`.
PRECAST_API void solarize(const Pixels& image, double threshold);
/// Keeps the upper `bits` bits of each value.
PRECAST_API void posterize(const Pixels& image, int bits);
/// Stretches each channel to 0..255.
PRECAST_API void autocontrast(const Pixels& image);
/// Equalises the histogram of each channel (Pillow's ImageOps.equalize).
PRECAST_API void equalize(const Pixels& image);
/// value + (1 - factor) * (smoothed - value); the outermost pixels are unchanged.
/// @param scratch image.shape.values() bytes
PRECAST_API void adjust_sharpness(const Pixels& image, double factor, std::span<std::byte> scratch);
/// @}

}  // namespace precast::data
