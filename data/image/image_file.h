#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "data/image/image.h"
#include "framework/core/export.h"

namespace precast::data {

/// What a file's first bytes tell. JPEGs may begin in many ways behind their first three bytes.
[[nodiscard]] PRECAST_API ImageFormat image_format(std::span<const std::byte> file);
/// What the ending of a file's name promises.
[[nodiscard]] PRECAST_API ImageFormat promised_format(std::string_view name);

/// What an image file was, beyond its pixels.
struct ImageFileFacts {
  ImageFormat format = ImageFormat::unknown;
  bool grey = false;
  /// CMYK or YCCK, converted to RGB.
  bool cmyk = false;
  /// It had transparency, which was dropped.
  bool alpha = false;
  /// 16 bits a channel, cut to 8.
  bool deep = false;
  /// A JPEG that FFCV's decoder and ours take for the same RGB as this one does: 8 bits, Huffman
  /// coding, grey or YCbCr in one of JPEG's usual subsamplings, baseline or progressive.
  bool plain_jpeg = false;
  /// Of a JPEG: progressive, or a scan for each colour.
  bool several_scans = false;
  /// EXIF's, 1 to 8. Above 1 the picture would be shown turned or mirrored.
  int orientation = 1;
  /// Complaints of the JPEG library about damage that it could get past.
  int warnings = 0;
};

/// Decodes a JPEG, PNG or WebP file, told apart by their first bytes and not by a name, to RGB as
/// Pillow's `Image.open(f).convert("RGB")` does: accurate integer DCT, EXIF orientation ignored,
/// grey repeated, CMYK taken as Adobe writes it (inverted), alpha dropped, of animations the first
/// picture, 16 bits cut to 8. Only grey PNGs of 16 bits differ: Pillow makes all that is brighter
/// than 255 of 65,535 white.
/// @param out overwritten; its memory is reused.
/// @throws DataError for any other content, a damaged or cut-off file, or more than 178,956,970
/// pixels (Pillow's limit too). Thread-safe.
PRECAST_API ImageFileFacts decode_image_file(std::span<const std::byte> file, Image& out);

/// The decoders behind decode_image_file(). @{
ImageFileFacts decode_jpeg_file(std::span<const std::byte> file, Image& out);
ImageFileFacts decode_png_file(std::span<const std::byte> file, Image& out);
ImageFileFacts decode_webp_file(std::span<const std::byte> file, Image& out);
/// @}

/// What a JPEG says before its pixels.
struct JpegHeader {
  ImageFileFacts facts;
  int height = 0;
  int width = 0;
};
/// @throws DataError as decode_image_file() does for a damaged header.
[[nodiscard]] JpegHeader read_jpeg_header(std::span<const std::byte> file);

/// Gives `out` room for that many pixels. @throws DataError above kMaxPixels.
void allocate_pixels(std::uint64_t width, std::uint64_t height, Image& out);

}  // namespace precast::data
