#include "data/transforms/center_crop.h"

#include <algorithm>

namespace precast::data {

void CenterCrop::options(Schema& schema) {
  schema.add("ratio", &ratio_, "side of the square as a fraction of the image's shorter side")
      .above(0)
      .max(1);
}

Rect CenterCrop::choose(int height, int width, RandomStream& /*random*/) const {
  const int side = std::max(1, static_cast<int>(ratio_ * std::min(height, width)));
  return {(height - side) / 2, (width - side) / 2, side, side};
}

}  // namespace precast::data
