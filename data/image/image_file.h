#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "data/image/image.h"
#include "framework/core/export.h"

namespace precast::data {

/// Detects the format from a file's first bytes.
[[nodiscard]] PRECAST_API ImageFormat image_format(std::span<const std::byte> file);
/// Returns the format that the extension of a file's name implies: .jpg, .jpeg, .png or .webp,
/// ignoring case; unknown for all other names.
[[nodiscard]] PRECAST_API ImageFormat format_from_extension(std::string_view name);

/// Properties of an image file besides its pixels.
struct ImageFileFacts {
  ImageFormat format = ImageFormat::unknown;
  bool grey = false;
  /// CMYK or YCCK, converted to RGB.
  bool cmyk = false;
  /// The image has an alpha channel, which was dropped.
  bool alpha = false;
  /// The channels have 16 bits; only the upper 8 are used.
  bool sixteen_bit = false;
  /// A JPEG for which FFCV's decoder, JpegDecoder (data/decode) and decode_image_file() return the
  /// same RGB, apart from the accuracy of their inverse DCTs: 8 bits, Huffman coding, grey or YCbCr
  /// in one of JPEG's usual subsamplings, baseline or progressive.
  bool plain_jpeg = false;
  /// For a JPEG: progressive, or with a separate scan for each colour component.
  bool several_scans = false;
  /// EXIF orientation, 1 to 8. If it is above 1, viewers show the image rotated or mirrored.
  int orientation = 1;
  /// Number of libjpeg's warnings about damage from which it has recovered.
  int warnings = 0;
};

/// Decodes a JPEG, PNG or WebP file to RGB. The first bytes determine the format, not the file's
/// name. The result is the same as Pillow's `Image.open(f).convert("RGB")`: accurate integer DCT,
/// EXIF orientation ignored, grey repeated, CMYK read as Adobe writes it (inverted), alpha dropped,
/// the first frame of an animation, the upper 8 of 16 bits. Only 16-bit grey PNGs differ: in them,
/// Pillow turns every value above 255 (of 65,535) into white.
/// @param out overwritten; its memory is reused.
/// @throws DataError for any other content, a truncated file, damage (except what
/// ImageFileFacts::warnings counts), or a file above kMaxPixels or the limits in jpeg_limits.h.
/// Thread-safe.
PRECAST_API ImageFileFacts decode_image_file(std::span<const std::byte> file, Image& out);

/// The decoders behind decode_image_file(). @{
ImageFileFacts decode_jpeg_file(std::span<const std::byte> file, Image& out);
ImageFileFacts decode_png_file(std::span<const std::byte> file, Image& out);
ImageFileFacts decode_webp_file(std::span<const std::byte> file, Image& out);
/// @}

/// The contents of a JPEG's header.
struct JpegHeader {
  ImageFileFacts facts;
  int height = 0;
  int width = 0;
};
/// Reads the header of a JPEG. @throws DataError if it is damaged.
[[nodiscard]] JpegHeader read_jpeg_header(std::span<const std::byte> file);

/// Sets the size of `out` to width x height and allocates its pixels. @throws DataError if width or
/// height is 0, or if there would be more than kMaxPixels pixels.
void allocate_pixels(std::uint64_t width, std::uint64_t height, Image& out);

}  // namespace precast::data
