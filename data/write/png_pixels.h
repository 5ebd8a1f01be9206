#pragma once

#include <cstddef>
#include <span>

#include "data/write/sample.h"
#include "framework/core/export.h"

namespace precast::data {

/// Decodes a PNG file without loss to an array [H, W, C] of `|u1` or `<u2` (PngLayout::as_stored).
/// @throws DataError for a damaged or truncated file, or an image of more than 3 * kMaxPixels
/// bytes. Thread-safe.
[[nodiscard]] PRECAST_API ArrayInput png_pixels(std::span<const std::byte> file);

}  // namespace precast::data
