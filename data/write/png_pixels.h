#pragma once

#include <cstddef>
#include <span>

#include "data/write/sample.h"
#include "framework/core/export.h"

namespace precast::data {

/// A PNG file as [H, W, C] of `|u1` or `<u2`, without loss (PngLayout::as_stored).
/// @throws DataError for a damaged or truncated file, or an image of more bytes than kMaxPixels
/// pixels of RGB. Thread-safe.
[[nodiscard]] PRECAST_API ArrayInput png_pixels(std::span<const std::byte> file);

}  // namespace precast::data
