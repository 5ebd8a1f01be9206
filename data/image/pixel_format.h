#pragma once

#include <cstddef>

#include "data/image/element_type.h"
#include "data/image/image.h"
#include "framework/core/export.h"

namespace precast::data {

class Normalize;

/// How finished pixels are stored in a batch.
struct PixelFormat {
  /// u8, f32, f16 or bf16. A float is the pixel's value, 0 to 255, unless `normalize` is given.
  ElementType type = ElementType::u8;
  /// [channels, height, width] instead of [height, width, channels].
  bool channels_first = false;
  /// Applied to floats, ignored for u8. Null: no normalisation. Borrowed.
  const Normalize* normalize = nullptr;
  /// 3, or 1 for images with one value per pixel.
  int channels = 3;
  /// Whether Resizer uses non-temporal stores, which bypass the caches, for pixels [height, width,
  /// 3] that it resizes or flips. It does so only in memory that is aligned to 64 bytes. Call
  /// hwy::FlushStream() before another thread reads the pixels. Other writers ignore this option.
  bool streamed = false;

  [[nodiscard]] std::size_t image_bytes(int height, int width) const {
    return static_cast<std::size_t>(height) * static_cast<std::size_t>(width) *
           static_cast<std::size_t>(channels) * element_size(type);
  }
};

/// Writes an image in the given format, without gaps. Results are the same on every CPU.
/// Thread-safe. @param out format.image_bytes() bytes of any alignment
PRECAST_API void write_pixels(const ImageView& image, const PixelFormat& format, std::byte* out);

/// Writes rows [first_row, first_row + rows.height) of an image of `height` rows as write_pixels()
/// does. @param out where the image begins
PRECAST_API void write_rows(const ImageView& rows, int first_row, int height,
                            const PixelFormat& format, std::byte* out);

}  // namespace precast::data
