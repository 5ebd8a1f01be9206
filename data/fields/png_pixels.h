#pragma once

#include <cstddef>
#include <span>

#include "data/fields/sample.h"
#include "framework/core/export.h"

namespace precast::data {

/// Whether these bytes begin as a PNG file does.
[[nodiscard]] PRECAST_API bool is_png(std::span<const std::byte> file);

/// A PNG file as [H, W, C] of `|u1` or `<u2`, without loss: 1 grey, 2 grey and alpha, 3 RGB, 4 RGB
/// and alpha. Fewer than 8 bits are widened to 8 (0 to 255), a palette becomes its colours, colours
/// declared transparent an alpha channel. @throws DataError for a damaged or cut-off file, or more
/// than kMaxPixels. Thread-safe.
[[nodiscard]] PRECAST_API ArrayInput png_pixels(std::span<const std::byte> file);

}  // namespace precast::data
