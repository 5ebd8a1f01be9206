#include "data/transforms/random_resized_crop.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace precast::data {
namespace {

constexpr int kTries = 10;

/// Python's int(round(x)): to nearest, halves to even.
int round_half_even(double value) {
  return static_cast<int>(std::nearbyint(value));
}

bool is_positive_range(const std::vector<double>& range) {
  return range.size() == 2 && range[0] > 0 && range[0] <= range[1];
}

}  // namespace

void RandomResizedCrop::options(Schema& schema) {
  schema.add("scale", &scale_, "fraction of the image's area in the crop: [smallest, largest]");
  schema.add("ratio", &ratio_, "width / height: [smallest, largest]");
}

std::string RandomResizedCrop::problem() const {
  if (!is_positive_range(scale_) || scale_[1] > 1) {
    return fmt::format(
        "scale: expected [smallest, largest] with 0 < smallest <= largest <= 1, got [{}]",
        fmt::join(scale_, ", "));
  }
  if (!is_positive_range(ratio_)) {
    return fmt::format("ratio: expected [smallest, largest] with 0 < smallest <= largest, got [{}]",
                       fmt::join(ratio_, ", "));
  }
  return {};
}

Rect RandomResizedCrop::choose(int height, int width, RandomStream& random) const {
  const double area = static_cast<double>(height) * width;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const double target_area = area * random.uniform(scale_[0], scale_[1]);
    const double aspect = std::exp(random.uniform(std::log(ratio_[0]), std::log(ratio_[1])));
    const int crop_width = round_half_even(std::sqrt(target_area * aspect));
    const int crop_height = round_half_even(std::sqrt(target_area / aspect));
    if (crop_width <= 0 || crop_width > width || crop_height <= 0 || crop_height > height) continue;
    const int row = static_cast<int>(random.uniform(0, height - crop_height + 1));
    const int column = static_cast<int>(random.uniform(0, width - crop_width + 1));
    return {row, column, crop_height, crop_width};
  }

  int crop_height = height;
  int crop_width = width;
  const double aspect = static_cast<double>(width) / height;
  if (aspect < ratio_[0]) {
    crop_height = std::clamp(round_half_even(width / ratio_[0]), 1, height);
  } else if (aspect > ratio_[1]) {
    crop_width = std::clamp(round_half_even(height * ratio_[1]), 1, width);
  }
  return {(height - crop_height) / 2, (width - crop_width) / 2, crop_height, crop_width};
}

}  // namespace precast::data
