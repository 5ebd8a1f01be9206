#include "data/transforms/rand_augment.h"

#include <fmt/format.h>

#include <cmath>

#include "data/transforms/options.h"

namespace precast::data {
namespace {

/// Element `i` of torch.linspace(begin, end, count), computed in float as in torch.
double linspace(float begin, float end, int count, int i) {
  if (count == 1) return begin;
  const float step = (end - begin) / static_cast<float>(count - 1);
  if (i < count / 2) return begin + step * static_cast<float>(i);
  return end - step * static_cast<float>(count - 1 - i);
}

/// The common part of RandAugment and TrivialAugment.
class Augment : public Transform {
 public:
  void options(Schema& schema) override {
    schema.add("num_magnitude_bins", &bins_, "number of levels of strength").min(2).max(1000);
    schema
        .add("interpolation", &interpolation_, "interpolation of pixels; masks always use nearest")
        .choices({"nearest", "bilinear"});
    schema.add("fill", &fill_, "colour outside the image, three numbers 0 to 255");
  }
  [[nodiscard]] std::string problem() const override { return colour_problem("fill", fill_); }
  [[nodiscard]] std::size_t scratch_bytes(const PixelShape& in) const override {
    return in.values();
  }
  [[nodiscard]] bool moves_pixels() const override { return true; }

 protected:
  [[nodiscard]] int bins() const { return static_cast<int>(bins_); }

  void augment(const Pixels& image, TransformContext& context, bool wide, int bin,
               std::size_t operation) const {
    double magnitude = augmentation_magnitude(operation, wide, bin, bins(), image.shape);
    if (augmentation_is_signed(operation) && context.random.uniform() <= 0.5) {
      magnitude = -magnitude;
    }
    if (!augmentation_moves(operation)) {
      if (context.mask_fill) return;
      return apply_augmentation(image, operation, magnitude, {}, context.scratch);
    }
    const bool smooth = interpolation_ == "bilinear" && !context.mask_fill;
    const std::array<std::uint8_t, 3> fill = fill_colour(fill_, context.mask_fill);
    apply_augmentation(image, operation, magnitude,
                       {smooth ? Interpolation::bilinear : Interpolation::nearest, fill},
                       context.scratch);
  }

 private:
  std::int64_t bins_ = 31;
  std::string interpolation_ = "nearest";
  std::vector<double> fill_ = {0, 0, 0};
};

class RandAugment final : public Augment {
 public:
  void options(Schema& schema) override {
    schema.add("num_ops", &num_ops_, "number of operations applied to each image").min(0).max(100);
    schema.add("magnitude", &magnitude_, "level of strength, from 0 to num_magnitude_bins - 1")
        .min(0);
    Augment::options(schema);
  }
  [[nodiscard]] std::string problem() const override {
    if (magnitude_ >= bins()) {
      return fmt::format("magnitude: expected a number below num_magnitude_bins ({}), got {}",
                         bins(), magnitude_);
    }
    return Augment::problem();
  }
  void apply(const Pixels& image, TransformContext& context) const override {
    for (std::int64_t n = 0; n < num_ops_; ++n) {
      const std::size_t operation = context.random.below(kAugmentations.size());
      augment(image, context, /*wide=*/false, static_cast<int>(magnitude_), operation);
    }
  }

 private:
  std::int64_t num_ops_ = 2;
  std::int64_t magnitude_ = 9;
};

class TrivialAugment final : public Augment {
 public:
  void apply(const Pixels& image, TransformContext& context) const override {
    const std::size_t operation = context.random.below(kAugmentations.size());
    const auto bin = static_cast<int>(context.random.below(static_cast<std::uint64_t>(bins())));
    augment(image, context, /*wide=*/true, bin, operation);
  }
};

}  // namespace

bool augmentation_is_signed(std::size_t operation) {
  using namespace augmentation;
  return operation >= shear_x && operation <= sharpness;
}

double augmentation_magnitude(std::size_t operation, bool wide, int bin, int bins,
                              const PixelShape& shape) {
  const auto from_zero = [&](double end) {
    return linspace(0, static_cast<float>(end), bins, bin);
  };
  using namespace augmentation;
  switch (operation) {
    case shear_x:
    case shear_y:
      return from_zero(wide ? 0.99 : 0.3);
    case translate_x:
      return from_zero(wide ? 32.0 : 150.0 / 331.0 * shape.width);
    case translate_y:
      return from_zero(wide ? 32.0 : 150.0 / 331.0 * shape.height);
    case rotation:
      return from_zero(wide ? 135.0 : 30.0);
    case brightness:
    case color:
    case contrast:
    case sharpness:
      return from_zero(wide ? 0.99 : 0.9);
    case posterizing: {
      const auto step = static_cast<float>((bins - 1) / (wide ? 6.0 : 4.0));
      return std::nearbyint(8 - static_cast<float>(bin) / step);
    }
    case solarizing:
      return linspace(1, 0, bins, bin);
    default:
      return 0;
  }
}

std::unique_ptr<Transform> make_rand_augment() {
  return std::make_unique<RandAugment>();
}
std::unique_ptr<Transform> make_trivial_augment() {
  return std::make_unique<TrivialAugment>();
}

}  // namespace precast::data
