#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

namespace precast::data {

/// Largest number of pixels accepted (also Pillow's limit). The limit is needed because a small
/// file can claim far more pixels than fit into memory.
inline constexpr std::uint64_t kMaxPixels = 178'956'970;

/// Kinds of image files that can be decoded.
enum class ImageFormat { unknown, jpeg, png, webp };

/// A rectangle of pixels: rows [row, row + height), columns [column, column + width).
struct Rect {
  int row = 0;
  int column = 0;
  int height = 0;
  int width = 0;
  bool operator==(const Rect&) const = default;
};

/// Borrowed pixels: [height, width, 3] uint8 RGB, rows `stride` bytes apart.
struct ImageView {
  const std::uint8_t* pixels = nullptr;
  int height = 0;
  int width = 0;
  std::ptrdiff_t stride = 0;

  [[nodiscard]] const std::uint8_t* row(int y) const { return pixels + y * stride; }
};

/// Borrowed pixels in planes of uint8: red, green and blue, each [height, width], rows `stride`
/// bytes apart. For a grey image, all three may be the same plane.
struct PlanarView {
  std::array<const std::uint8_t*, 3> planes{};
  int height = 0;
  int width = 0;
  std::ptrdiff_t stride = 0;

  [[nodiscard]] const std::uint8_t* row(std::size_t plane, int y) const {
    return planes[plane] + y * stride;
  }
};

/// Borrowed pixels, in whichever layout is cheapest for the decoder: interleaved or planar.
using DecodedPixels = std::variant<ImageView, PlanarView>;

/// Owned pixels: [height, width, 3] uint8 RGB, rows without gaps.
struct Image {
  int height = 0;
  int width = 0;
  std::vector<std::uint8_t> pixels;

  Image() = default;
  Image(int height_px, int width_px)
      : height(height_px),
        width(width_px),
        pixels(static_cast<std::size_t>(height_px) * static_cast<std::size_t>(width_px) * 3) {}
  [[nodiscard]] ImageView view() const {
    return {pixels.data(), height, width, static_cast<std::ptrdiff_t>(width) * 3};
  }
};

}  // namespace precast::data
