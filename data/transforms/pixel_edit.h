#pragma once

#include <cstdint>

#include "framework/core/host_device.h"

namespace precast::data {

/// What fills the area that a shift uncovers. Modes are named as in numpy.pad.
enum class Border : std::int32_t { constant, edge, reflect, symmetric };

/// Returns which pixel of a line of `size` px appears at `index`, or -1 for the colour of a
/// constant border. `index` may be outside the line: by at most size - 1 px for reflect, and size
/// px for symmetric.
[[nodiscard]] PRECAST_HOST_DEVICE constexpr int source_index(int index, int size, Border border) {
  if (index >= 0 && index < size) return index;
  switch (border) {
    case Border::constant:
      return -1;
    case Border::edge:
      return index < 0 ? 0 : size - 1;
    case Border::reflect:
      return index < 0 ? -index : 2 * size - 2 - index;
    case Border::symmetric:
      return index < 0 ? -1 - index : 2 * size - 1 - index;
  }
  return -1;
}

/// The change that a transform makes to one image, if each output pixel is either a pixel of the
/// input or a colour. Such a change can be applied to each pixel separately, also on a GPU
/// (image_plan.h). All members have the same size on the host and on a GPU.
struct PixelEdit {
  enum class Kind : std::int32_t { none, shift, fill, horizontal_flip, vertical_flip };
  Kind kind = Kind::none;
  /// shift: output (y, x) is input (y + row, x + column), or the border. fill: the first row and
  /// column of the rectangle.
  std::int32_t row = 0;
  std::int32_t column = 0;
  /// fill: the size of the rectangle.
  std::int32_t height = 0;
  std::int32_t width = 0;
  Border border = Border::constant;
  /// The colour of the rectangle or of a constant border.
  std::uint8_t colour[3] = {0, 0, 0};
  std::uint8_t unused = 0;
};

}  // namespace precast::data
