#pragma once

#include <cstddef>
#include <span>

namespace precast::data {

/// Returns the orientation from the first directory of an EXIF block (tag 0x0112): 2 to 8 for
/// images that must be rotated or mirrored before they are shown; 1 for all other images, and if
/// the block does not contain the tag or is damaged.
/// @param tiff the block, beginning with its byte order mark (`II` or `MM`) or with the `Exif` and
/// two zero bytes that precede the mark in a JPEG.
[[nodiscard]] int exif_orientation(std::span<const std::byte> tiff);

}  // namespace precast::data
