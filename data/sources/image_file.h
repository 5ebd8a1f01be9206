#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/image.h"
#include "framework/core/export.h"

namespace precast::data {

/// What an image file was, beyond its pixels.
struct ImageFileFacts {
  bool png = false;
  bool grey = false;
  /// CMYK or YCCK, converted to RGB.
  bool cmyk = false;
  /// A JPEG that any decoder reads row by row: baseline, 8 bits, three components as YCbCr.
  bool baseline_ycbcr = false;
  /// Complaints of the JPEG library about damage that it could get past.
  int warnings = 0;
};

/// Decodes a JPEG or PNG file, told apart by their first bytes and not by a name, to RGB as
/// Pillow's `Image.open(f).convert("RGB")` does: accurate integer DCT, EXIF orientation ignored,
/// grey repeated, CMYK taken as Adobe writes it (inverted), alpha dropped, 16 bits cut to 8.
/// @param out overwritten; its memory is reused.
/// @throws DataError for any other content, a damaged or cut-off file, or more than 178,956,970
/// pixels (Pillow's limit too). Thread-safe.
PRECAST_API ImageFileFacts decode_image_file(std::span<const std::byte> file, Image& out);

/// The two decoders behind decode_image_file(). @{
ImageFileFacts decode_jpeg_file(std::span<const std::byte> file, Image& out);
ImageFileFacts decode_png_file(std::span<const std::byte> file, Image& out);
/// @}

/// Gives `out` room for that many pixels. @throws DataError above kMaxPixels.
void allocate_pixels(std::uint64_t width, std::uint64_t height, Image& out);

}  // namespace precast::data
