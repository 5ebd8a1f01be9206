#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>

#include "data/image/image.h"
#include "data/image/pixel_format.h"
#include "framework/core/export.h"

namespace precast::data {

/// How an image is resized.
enum class ResizeFilter {
  /// OpenCV's INTER_AREA, which FFCV uses when it writes and when it reads: the true area average
  /// if no axis grows, otherwise two taps on both axes (at pixel edges, not centres: the first tap
  /// of output i is floor(i * scale); an axis that shrinks is then only sampled, not averaged).
  /// With two taps, equal to OpenCV 4.6 (modules/imgproc/src/resize.cpp); otherwise, within 1 level
  /// of it.
  area,
  /// Bilinear with half-pixel centres, without antialiasing: equal to OpenCV's INTER_LINEAR; within
  /// 1 level of torch's interpolate(align_corners=False) and tf.image.resize.
  bilinear,
  /// Like `bilinear` along an axis that grows. Along an axis that shrinks, a triangle filter that
  /// is twice as wide as the scale, as in Pillow's BILINEAR and with antialias=True in torch and
  /// torchvision. Within 1 level of these.
  antialias,
};

/// Crops (as a view), resizes, flips and converts in one pass over the source. Uses fixed-point
/// arithmetic for up to 32 taps per output, so that results are the same on every CPU. Keeps its
/// scratch memory between calls: use one resizer per thread.
class PRECAST_API Resizer {
 public:
  Resizer();
  ~Resizer();
  Resizer(Resizer&&) noexcept;
  Resizer& operator=(Resizer&&) noexcept;

  /// @param in     at least 1 x 1.
  /// @param out_height, out_width at least 1.
  /// @param flip   mirrors the result left to right.
  /// @param out    format.image_bytes(out_height, out_width), aligned for its type; must not
  /// overlap `in`.
  void resize(const ImageView& in, int out_height, int out_width, bool flip, ResizeFilter filter,
              const PixelFormat& format, std::byte* out);

  /// Resizes planes. The result is byte-identical to that of the interleaved pixels. @param in must
  /// not overlap `out`; nothing outside its rows is read.
  void resize(const PlanarView& in, int out_height, int out_width, bool flip, ResizeFilter filter,
              const PixelFormat& format, std::byte* out);
  void resize(const DecodedPixels& in, int out_height, int out_width, bool flip,
              ResizeFilter filter, const PixelFormat& format, std::byte* out) {
    std::visit(
        [&](const auto& view) { resize(view, out_height, out_width, flip, filter, format, out); },
        in);
  }
  /// Whether decoding to planes and resizing them takes less time than decoding to interleaved
  /// pixels and resizing those. Thread-safe.
  [[nodiscard]] static bool prefers_planes(int height, int width, int out_height, int out_width,
                                           ResizeFilter filter);

  /// Resizes to contiguous uint8 pixels, without flipping.
  void resize(const ImageView& in, int out_height, int out_width, ResizeFilter filter,
              std::uint8_t* out) {
    resize(in, out_height, out_width, false, filter, {}, reinterpret_cast<std::byte*>(out));
  }

 private:
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace precast::data
