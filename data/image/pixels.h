#pragma once

#include <cstddef>
#include <cstdint>

namespace precast::data {

/// Size of an image in memory: height x width pixels of `channels` values (RGB: 3, mask: 1).
struct PixelShape {
  int height = 0;
  int width = 0;
  int channels = 3;

  [[nodiscard]] std::size_t pixels() const {
    return static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  }
  [[nodiscard]] std::size_t values() const { return pixels() * static_cast<std::size_t>(channels); }
  bool operator==(const PixelShape&) const = default;
};

/// Borrowed pixels that may be modified: [height, width, channels] uint8, rows without gaps.
struct Pixels {
  std::uint8_t* data = nullptr;
  PixelShape shape;

  [[nodiscard]] std::uint8_t* row(int y) const { return data + y * row_values(); }
  /// Values in a row.
  [[nodiscard]] std::ptrdiff_t row_values() const {
    return std::ptrdiff_t{shape.width} * shape.channels;
  }
};

}  // namespace precast::data
