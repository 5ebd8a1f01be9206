#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/core/export.h"

namespace precast::data {

/// The luma of ITU-R BT.601: (19595 R + 38470 G + 7471 B + 32768) >> 16, where the weights are
/// 0.299, 0.587 and 0.114 times 65536. libjpeg (rgb_gray_convert) and Pillow (`convert("L")`)
/// compute the same value. The luma of a pixel with three equal values is that value. Results are
/// the same on every CPU. Thread-safe.
/// @{

/// @param rgb [pixels, 3]. @param grey [pixels]; may be the beginning of `rgb`.
PRECAST_API void luma_of(const std::uint8_t* rgb, std::size_t pixels, std::uint8_t* grey);
/// Replaces each pixel's three values with its luma. @param rgb [pixels, 3]
PRECAST_API void replace_with_luma(std::uint8_t* rgb, std::size_t pixels);
/// @}

}  // namespace precast::data
