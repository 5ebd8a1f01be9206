#pragma once

#include <algorithm>

#include "data/transforms/crop.h"

namespace precast::data {

/// Chooses the same window in every image. If an image is smaller, the crop is the part of the
/// window inside the image, but at least one pixel.
class FixedCrop final : public Crop {
 public:
  explicit FixedCrop(const Rect& window) : window_(window) {}
  [[nodiscard]] Rect choose(int height, int width, RandomStream& /*random*/) const override {
    const int row = std::min(window_.row, height - 1);
    const int column = std::min(window_.column, width - 1);
    return {row, column, std::min(window_.height, height - row),
            std::min(window_.width, width - column)};
  }

 private:
  Rect window_;
};

}  // namespace precast::data
