#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace precast::data {

/// Borrowed pixels: planes of red, green and blue, each [height, width] uint8 with rows `stride`
/// bytes apart. Planes of equal content may be the same.
struct PlanesView {
  std::array<const std::uint8_t*, 3> planes{};
  int height = 0;
  int width = 0;
  std::ptrdiff_t stride = 0;

  [[nodiscard]] const std::uint8_t* row(std::size_t plane, int y) const {
    return planes[plane] + y * stride;
  }
};

}  // namespace precast::data
