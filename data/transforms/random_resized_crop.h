#pragma once

#include <vector>

#include "data/transforms/crop.h"
#include "framework/core/export.h"

namespace precast::data {

/// A random area and aspect ratio (Szegedy et al., "Going deeper with convolutions", CVPR 2015),
/// with the rounding of FFCV's RandomResizedCropRGBImageDecoder: ten tries, then the largest
/// centred crop within the ratios.
class PRECAST_API RandomResizedCrop final : public Crop {
 public:
  void options(Schema& schema) override;
  [[nodiscard]] std::string problem() const override;
  [[nodiscard]] Rect choose(int height, int width, RandomStream& random) const override;

 private:
  /// Share of the image's area, [smallest, largest].
  std::vector<double> scale_ = {0.08, 1.0};
  /// Width over height, [smallest, largest].
  std::vector<double> ratio_ = {3.0 / 4.0, 4.0 / 3.0};
};

}  // namespace precast::data
