#pragma once

#include "data/transforms/crop.h"
#include "framework/core/export.h"

namespace precast::data {

/// The centred square of side int(ratio * min(height, width)), at least 1 px, as in FFCV's
/// CenterCropRGBImageDecoder.
class PRECAST_API CenterCrop final : public Crop {
 public:
  CenterCrop() = default;
  explicit CenterCrop(double ratio) : ratio_(ratio) {}
  void options(Schema& schema) override;
  [[nodiscard]] Rect choose(int height, int width, RandomStream& random) const override;

 private:
  double ratio_ = 224.0 / 256.0;
};

}  // namespace precast::data
