#pragma once

#include <cstddef>

#include "data/decode/baseline_header.h"
#include "data/image/image.h"

namespace precast::data {

/// Half-open ranges of the MCUs that a region needs, and the size of the image in MCUs.
struct McuWindow {
  std::size_t first_row = 0, end_row = 0, first_column = 0, end_column = 0;
  std::size_t rows = 0, columns = 0;
};

/// Returns the MCUs that the region needs, including those that are needed to upsample its chroma.
/// @param region inside the image.
McuWindow mcu_window(const BaselineHeader& header, const Rect& region);

}  // namespace precast::data
