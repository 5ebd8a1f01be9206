#pragma once

#include <cstddef>
#include <span>

namespace precast::data {

/// Returns the orientation of the camera from the first directory of an EXIF block (tag 0x0112): 2
/// to 8 for images that must be rotated or mirrored before they are shown, 1 for all others, also
/// if the block does not contain it or is damaged.
/// @param tiff the block from its byte order mark (`II` or `MM`) on; `Exif` and two zeros, with
/// which it begins in a JPEG, may precede it.
[[nodiscard]] int exif_orientation(std::span<const std::byte> tiff);

}  // namespace precast::data
