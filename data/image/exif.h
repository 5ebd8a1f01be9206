#pragma once

#include <cstddef>
#include <span>

namespace precast::data {

/// How a camera was held, as the first directory of an EXIF block says it (tag 0x0112): 2 to 8 for
/// pictures that are to be turned or mirrored before they are shown, 1 for all others, also where
/// the block says nothing or is damaged.
/// @param tiff the block from its byte order mark (`II` or `MM`) on; `Exif` and two zeros, with
/// which JPEGs begin it, may stand before that.
[[nodiscard]] int exif_orientation(std::span<const std::byte> tiff);

}  // namespace precast::data
