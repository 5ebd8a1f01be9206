#include "data/decode/mcu_window.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace precast::data {
namespace {

/// Returns the first and the end MCU that pixels [first, end) need, along an axis of `size` pixels.
/// A pixel between two subsampled chroma samples is computed from both, so one more sample on each
/// side is needed.
std::pair<std::size_t, std::size_t> mcu_range(int first, int end, int size, int sampling) {
  if (sampling == 1) {
    return {static_cast<std::size_t>(first / 8), static_cast<std::size_t>((end - 1) / 8 + 1)};
  }
  const int last = end - 1;
  const int low = std::max(0, first / 2 - (first % 2 == 0 ? 1 : 0));
  const int high = std::min((size - 1) / 2, last / 2 + last % 2);
  return {static_cast<std::size_t>(low / 8), static_cast<std::size_t>(high / 8 + 1)};
}

}  // namespace

McuWindow mcu_window(const BaselineHeader& header, const Rect& region) {
  McuWindow window;
  const auto in_mcus = [](int pixels, int sampling) {
    return static_cast<std::size_t>((pixels + 8 * sampling - 1) / (8 * sampling));
  };
  window.rows = in_mcus(header.height, header.luma_rows);
  window.columns = in_mcus(header.width, header.luma_columns);
  std::tie(window.first_row, window.end_row) =
      mcu_range(region.row, region.row + region.height, header.height, header.luma_rows);
  std::tie(window.first_column, window.end_column) =
      mcu_range(region.column, region.column + region.width, header.width, header.luma_columns);
  return window;
}

}  // namespace precast::data
