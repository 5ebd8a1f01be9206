#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/image/pixels.h"

namespace precast::test {

/// The results of torchvision and FFCV for one image
/// (tests/golden/transforms/make_transform_goldens.py).
struct Golden {
  /// The parameters of each case.
  nlohmann::json cases;
  /// One image per case.
  std::vector<std::vector<std::uint8_t>> images;
};
Golden transform_golden(const std::string& name);
nlohmann::json transform_golden_facts();

/// An image for transforms to change.
struct PixelBuffer {
  std::vector<std::uint8_t> values;
  data::PixelShape shape;
  data::Pixels pixels() { return {values.data(), shape}; }
};
/// The image of the goldens, [37, 45, 3].
PixelBuffer golden_image();

struct Difference {
  int worst = 0;
  /// Share of the values that differ.
  double share = 0;
};
Difference difference(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b);

}  // namespace precast::test
