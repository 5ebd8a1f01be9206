#include "data/transforms/rand_augment.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "data/transforms/color.h"
#include "data/transforms/options.h"
#include "data/transforms/warp.h"

namespace precast::data {
namespace {

/// Indices into kAugmentations.
enum Operation : std::size_t {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotation,
  brightness,
  color,
  contrast,
  sharpness,
  posterizing,
  solarizing,
  auto_contrast,
  equalizing
};

bool moves(std::size_t operation) {
  return operation >= shear_x && operation <= rotation;
}

/// One element of torch.linspace(begin, end, count), in float as there.
double linspace(float begin, float end, int count, int i) {
  if (count == 1) return begin;
  const float step = (end - begin) / static_cast<float>(count - 1);
  if (i < count / 2) return begin + step * static_cast<float>(i);
  return end - step * static_cast<float>(count - 1 - i);
}

AffineParameters affine_of(std::size_t operation, double magnitude, const PixelShape& shape) {
  AffineParameters parameters;
  constexpr double kDegrees = 180 / std::numbers::pi;
  if (operation == rotation) {
    parameters.angle = -magnitude;
  } else if (operation == translate_x || operation == translate_y) {
    parameters.translate[operation == translate_x ? 0 : 1] = std::trunc(magnitude);
  } else {
    // About the upper left corner.
    parameters.center = {-0.5 * shape.width, -0.5 * shape.height};
    parameters.shear[operation == shear_x ? 0 : 1] = kDegrees * std::atan(magnitude);
  }
  return parameters;
}

void change_colour(const Pixels& image, std::size_t operation, double magnitude,
                   std::span<std::byte> scratch) {
  switch (operation) {
    case brightness:
      return adjust_brightness(image, 1 + magnitude);
    case color:
      return adjust_saturation(image, 1 + magnitude);
    case contrast:
      return adjust_contrast(image, 1 + magnitude);
    case sharpness:
      return adjust_sharpness(image, 1 + magnitude, scratch);
    case posterizing:
      return posterize(image, static_cast<int>(magnitude));
    case solarizing:
      return solarize(image, 255 * magnitude);
    case auto_contrast:
      return autocontrast(image);
    case equalizing:
      return equalize(image);
    default:
      return;
  }
}

/// The common part of both transforms.
class Augment : public Transform {
 public:
  void options(Schema& schema) override {
    schema.add("num_magnitude_bins", &bins_, "steps of strength").min(2).max(1000);
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
    if (moves(operation)) {
      move(image, operation, magnitude, context);
    } else if (!context.mask_fill) {
      change_colour(image, operation, magnitude, context.scratch);
    }
  }

 private:
  void move(const Pixels& image, std::size_t operation, double magnitude,
            TransformContext& context) const {
    const bool smooth = interpolation_ == "bilinear" && !context.mask_fill;
    const std::array<std::uint8_t, 3> fill =
        context.mask_fill ? std::array{*context.mask_fill, *context.mask_fill, *context.mask_fill}
                          : to_colour(fill_);
    warp(image, inverse_matrix(affine_of(operation, magnitude, image.shape)),
         smooth ? Interpolation::bilinear : Interpolation::nearest, fill, context.scratch);
  }

  std::int64_t bins_ = 31;
  std::string interpolation_ = "nearest";
  std::vector<double> fill_ = {0, 0, 0};
};

class RandAugment final : public Augment {
 public:
  void options(Schema& schema) override {
    schema.add("num_ops", &num_ops_, "operations one after the other").min(0).max(100);
    schema.add("magnitude", &magnitude_, "strength, below num_magnitude_bins").min(0);
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
  return operation >= shear_x && operation <= sharpness;
}

double augmentation_magnitude(std::size_t operation, bool wide, int bin, int bins,
                              const PixelShape& shape) {
  const auto from_zero = [&](double end) {
    return linspace(0, static_cast<float>(end), bins, bin);
  };
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
