#pragma once

#include <cstddef>

#include "data/decode/baseline_header.h"
#include "data/image/image.h"

namespace precast::data {

/// Half-open ranges of MCUs that a region needs, and the size of the image in them.
struct McuWindow {
  std::size_t first_row = 0, end_row = 0, first_column = 0, end_column = 0;
  std::size_t rows = 0, columns = 0;
};

/// @param region inside the image. Rows and columns that its upsampled chroma needs count.
McuWindow mcu_window(const BaselineHeader& header, const Rect& region);

}  // namespace precast::data
