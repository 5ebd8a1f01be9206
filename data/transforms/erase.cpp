#include "data/transforms/erase.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "data/image/image.h"
#include "data/transforms/options.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

PixelEdit fill_of(const Rect& region, const std::vector<double>& colour) {
  PixelEdit fill{.kind = PixelEdit::Kind::fill,
                 .row = region.row,
                 .column = region.column,
                 .height = region.height,
                 .width = region.width};
  std::ranges::copy(to_colour(colour), fill.colour);
  return fill;
}

/// Does nothing if the rectangle of `fill` is empty.
void fill_region(const Pixels& image, const PixelEdit& fill) {
  for (int y = fill.row; y < fill.row + fill.height; ++y) {
    std::uint8_t* pixel = image.row(y) + std::ptrdiff_t{3} * fill.column;
    for (int x = 0; x < fill.width; ++x, pixel += 3) std::copy_n(fill.colour, 3, pixel);
  }
}

class Cutout final : public Transform {
 public:
  void options(Schema& schema) override {
    schema.add("crop_size", &crop_size_, "side of the square, px").min(1).required();
    schema.add("fill", &fill_, "colour, three numbers 0 to 255");
  }
  [[nodiscard]] std::string problem() const override { return colour_problem("fill", fill_); }

  [[nodiscard]] PixelShape output(const PixelShape& in) const override {
    if (crop_size_ > std::min(in.height, in.width)) {
      throw ConfigError(
          fmt::format("crop_size: expected at most {} for images of {} x {} px, got {}",
                      std::min(in.height, in.width), in.width, in.height, crop_size_));
    }
    return in;
  }

  [[nodiscard]] bool is_edit() const override { return true; }
  [[nodiscard]] PixelEdit edit(const PixelShape& shape, RandomStream& random) const override {
    const auto side = static_cast<int>(crop_size_);
    const auto row = random.below(static_cast<std::uint64_t>(shape.height - side) + 1);
    const auto column = random.below(static_cast<std::uint64_t>(shape.width - side) + 1);
    return fill_of({static_cast<int>(row), static_cast<int>(column), side, side}, fill_);
  }

  void apply(const Pixels& image, TransformContext& context) const override {
    fill_region(image, edit(image.shape, context.random));
  }

 private:
  std::int64_t crop_size_ = 1;
  std::vector<double> fill_ = {0, 0, 0};
};

class RandomErasing final : public Transform {
 public:
  void options(Schema& schema) override {
    schema.add("probability", &probability_, "probability that an image is changed").min(0).max(1);
    schema.add("scale", &scale_, "erased fraction of the image's area: [smallest, largest]");
    schema.add("ratio", &ratio_, "height / width of the rectangle: [smallest, largest]");
    schema.add("fill", &fill_, "colour, three numbers 0 to 255");
    schema.add("noise_std", &noise_std_, "standard deviation of noise that is added to the colour")
        .min(0)
        .max(255);
  }

  [[nodiscard]] std::string problem() const override {
    if (std::string wrong = range_problem("scale", scale_, 0, 1); !wrong.empty()) return wrong;
    if (std::string wrong = range_problem("ratio", ratio_, 1e-3, 1e3); !wrong.empty()) return wrong;
    return colour_problem("fill", fill_);
  }

  [[nodiscard]] bool is_edit() const override { return noise_std_ <= 0; }
  [[nodiscard]] PixelEdit edit(const PixelShape& shape, RandomStream& random) const override {
    if (!(random.uniform() < probability_)) return {};
    const std::optional<Rect> region = choose(shape, random);
    return region ? fill_of(*region, fill_) : PixelEdit{};
  }

  void apply(const Pixels& image, TransformContext& context) const override {
    const PixelEdit fill = edit(image.shape, context.random);
    if (noise_std_ > 0) {
      fill_noise(image, {fill.row, fill.column, fill.height, fill.width}, context.random);
    } else {
      fill_region(image, fill);
    }
  }

 private:
  /// Tries ten times, as torchvision does. A rectangle as high or as wide as the image is rejected.
  [[nodiscard]] std::optional<Rect> choose(const PixelShape& shape, RandomStream& random) const {
    constexpr int kTries = 10;
    const auto pixels = static_cast<double>(shape.pixels());
    for (int attempt = 0; attempt < kTries; ++attempt) {
      const double area = pixels * random.uniform(scale_[0], scale_[1]);
      const double ratio = std::exp(random.uniform(std::log(ratio_[0]), std::log(ratio_[1])));
      const int height = static_cast<int>(std::nearbyint(std::sqrt(area * ratio)));
      const int width = static_cast<int>(std::nearbyint(std::sqrt(area / ratio)));
      if (height >= shape.height || width >= shape.width) continue;
      const auto row = random.below(static_cast<std::uint64_t>(shape.height - height) + 1);
      const auto column = random.below(static_cast<std::uint64_t>(shape.width - width) + 1);
      return Rect{static_cast<int>(row), static_cast<int>(column), height, width};
    }
    return std::nullopt;
  }

  void fill_noise(const Pixels& image, const Rect& region, RandomStream& random) const {
    for (int y = region.row; y < region.row + region.height; ++y) {
      std::uint8_t* value = image.row(y) + std::ptrdiff_t{3} * region.column;
      for (int x = 0; x < region.width; ++x) {
        for (const double mean : fill_) {
          const double noise = noise_std_ * random.normal();
          *value++ =
              static_cast<std::uint8_t>(std::clamp(std::nearbyint(mean + noise), 0.0, 255.0));
        }
      }
    }
  }

  double probability_ = 0.5;
  std::vector<double> scale_ = {0.02, 0.33};
  std::vector<double> ratio_ = {0.3, 3.3};
  std::vector<double> fill_ = {0, 0, 0};
  double noise_std_ = 0;
};

}  // namespace

std::unique_ptr<Transform> make_cutout() {
  return std::make_unique<Cutout>();
}
std::unique_ptr<Transform> make_random_erasing() {
  return std::make_unique<RandomErasing>();
}

}  // namespace precast::data
