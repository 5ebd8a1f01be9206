#pragma once

#include <cstddef>
#include <cstdint>

namespace precast::data {

/// SIMD kernels on [pixels, 3] uint8 RGB, for the best instruction set of the CPU. Luminance is
/// 0.2989 r + 0.587 g + 0.114 b, truncated to an integer. @{
[[nodiscard]] std::uint64_t sum_of_luminance(const std::uint8_t* rgb, std::size_t pixels);
/// factor * value + (1 - factor) * luminance, clamped to 0..255, truncated to an integer.
void blend_with_luminance(std::uint8_t* rgb, std::size_t pixels, float factor);
/// Adds `shift` turns to the hue (HSV).
void rotate_hue(std::uint8_t* rgb, std::size_t pixels, float shift);
/// @}

}  // namespace precast::data
