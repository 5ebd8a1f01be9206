#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "data/image/image.h"

namespace precast::test {

/// Copies pixels into a vector, three bytes per pixel. @{
inline std::vector<std::uint8_t> copy_of(const data::ImageView& view) {
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < view.height; ++y)
    pixels.insert(pixels.end(), view.row(y), view.row(y) + std::ptrdiff_t{3} * view.width);
  return pixels;
}

inline std::vector<std::uint8_t> copy_of(const data::PlanarView& view) {
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < view.height; ++y) {
    for (int x = 0; x < view.width; ++x) {
      for (std::size_t c = 0; c < 3; ++c) pixels.push_back(view.row(c, y)[x]);
    }
  }
  return pixels;
}

inline std::vector<std::uint8_t> copy_of(const data::DecodedPixels& pixels) {
  return std::visit([](const auto& view) { return copy_of(view); }, pixels);
}
/// @}

/// Cuts a region out of `pixels`, an image that is `width` pixels wide.
inline std::vector<std::uint8_t> cut(const std::vector<std::uint8_t>& pixels, int width,
                                     const data::Rect& region) {
  const std::ptrdiff_t stride = std::ptrdiff_t{width} * 3;
  return copy_of(
      data::ImageView{pixels.data() + region.row * stride + std::ptrdiff_t{region.column} * 3,
                      region.height, region.width, stride});
}

}  // namespace precast::test
