#pragma once

#include "data/transforms/crop.h"

namespace precast::data {

/// No crop: the whole image is resized, which may change its aspect ratio.
class WholeImage final : public Crop {
 public:
  [[nodiscard]] Rect choose(int height, int width, RandomStream& /*random*/) const override {
    return {0, 0, height, width};
  }
};

}  // namespace precast::data
