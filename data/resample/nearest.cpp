#include "data/resample/nearest.h"

#include <algorithm>

namespace precast::data {
namespace {

/// Returns floor((index + 0.5) * size / outputs), computed with integers.
int nearest_index(int index, int size, int outputs) {
  const std::int64_t doubled = (std::int64_t{2} * index + 1) * size;
  return static_cast<int>(std::min<std::int64_t>(size - 1, doubled / (2 * std::int64_t{outputs})));
}

}  // namespace

void resize_nearest(const ImageView& in, bool flip, const Pixels& out) {
  const auto [height, width, channels] = out.shape;
  for (int y = 0; y < height; ++y) {
    const std::uint8_t* const source = in.row(nearest_index(y, in.height, height));
    std::uint8_t* to = out.row(y);
    for (int x = 0; x < width; ++x, to += channels) {
      const int from = nearest_index(flip ? width - 1 - x : x, in.width, width);
      std::copy_n(source + std::ptrdiff_t{from} * channels, channels, to);
    }
  }
}

}  // namespace precast::data
