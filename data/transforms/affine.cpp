#include "data/transforms/affine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "data/transforms/options.h"
#include "data/transforms/warp.h"

namespace precast::data {
namespace {

/// The common part of rotate and affine.
class Warp : public Transform {
 public:
  void options(Schema& schema) override {
    schema.add("degrees", &degrees_, "angle in degrees: [smallest, largest]").required();
    add_options(schema);
    schema
        .add("interpolation", &interpolation_, "interpolation of pixels; masks always use nearest")
        .choices({"nearest", "bilinear"});
    schema.add("fill", &fill_, "colour outside the image, three numbers 0 to 255");
    schema.add("probability", &probability_, "probability that an image is changed").min(0).max(1);
  }
  [[nodiscard]] std::string problem() const override {
    if (std::string wrong = range_problem("degrees", degrees_, -360, 360); !wrong.empty()) {
      return wrong;
    }
    return colour_problem("fill", fill_);
  }
  [[nodiscard]] std::size_t scratch_bytes(const PixelShape& in) const override {
    return in.values();
  }
  [[nodiscard]] bool moves_pixels() const override { return true; }

  void apply(const Pixels& image, TransformContext& context) const final {
    if (!(context.random.uniform() < probability_)) return;
    const AffineMatrix matrix = inverse_matrix(choose(image.shape, context.random));
    const bool smooth = interpolation_ == "bilinear" && !context.mask_fill;
    const std::array<std::uint8_t, 3> fill = fill_colour(fill_, context.mask_fill);
    warp(image, matrix, smooth ? Interpolation::bilinear : Interpolation::nearest, fill,
         context.scratch);
  }

 protected:
  virtual void add_options(Schema& /*schema*/) {}
  [[nodiscard]] virtual AffineParameters choose(const PixelShape& shape,
                                                RandomStream& random) const = 0;
  [[nodiscard]] double angle(RandomStream& random) const {
    return random.uniform(degrees_.at(0), degrees_.at(1));
  }

 private:
  std::vector<double> degrees_ = {0, 0};
  std::string interpolation_ = "nearest";
  std::vector<double> fill_ = {0, 0, 0};
  double probability_ = 1;
};

class Rotate final : public Warp {
  [[nodiscard]] AffineParameters choose(const PixelShape& /*shape*/,
                                        RandomStream& random) const override {
    return {.angle = -angle(random)};
  }
};

class Affine final : public Warp {
 public:
  [[nodiscard]] std::string problem() const override {
    if (std::string wrong = Warp::problem(); !wrong.empty()) return wrong;
    for (const double share : translate_) {
      if (translate_.size() == 2 && share >= 0 && share <= 1) continue;
      return fmt::format(
          "translate: expected two fractions from 0 to 1, of width and height, got [{}]",
          fmt::join(translate_, ", "));
    }
    if (std::string wrong = range_problem("scale", scale_, 1e-3, 1e3); !wrong.empty()) return wrong;
    if (shear_.empty()) return {};
    if (shear_.size() != 2 && shear_.size() != 4) {
      return fmt::format("shear: expected 2 or 4 numbers, got {}", shear_.size());
    }
    for (std::size_t i = 0; i < shear_.size(); i += 2) {
      if (std::string wrong = range_problem("shear", {shear_[i], shear_[i + 1]}, -89, 89);
          !wrong.empty()) {
        return wrong;
      }
    }
    return {};
  }

 private:
  void add_options(Schema& schema) override {
    schema.add("translate", &translate_, "largest shift, as fractions of width and height");
    schema.add("scale", &scale_, "scale factor: [smallest, largest]");
    schema.add("shear", &shear_,
               "shear angle in degrees: [smallest, largest] along x, or [smallest x, largest x, "
               "smallest y, largest y]");
  }

  [[nodiscard]] AffineParameters choose(const PixelShape& shape,
                                        RandomStream& random) const override {
    AffineParameters parameters{.angle = angle(random)};
    const double sides[] = {static_cast<double>(shape.width), static_cast<double>(shape.height)};
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const double max_shift = translate_.empty() ? 0 : translate_[axis] * sides[axis];
      parameters.translate[axis] = std::nearbyint(random.uniform(-max_shift, max_shift));
    }
    parameters.scale = random.uniform(scale_[0], scale_[1]);
    for (std::size_t axis = 0; 2 * axis < shear_.size(); ++axis) {
      parameters.shear[axis] = random.uniform(shear_[2 * axis], shear_[2 * axis + 1]);
    }
    return parameters;
  }

  std::vector<double> translate_ = {0, 0};
  std::vector<double> scale_ = {1, 1};
  std::vector<double> shear_;
};

}  // namespace

std::unique_ptr<Transform> make_rotate() {
  return std::make_unique<Rotate>();
}
std::unique_ptr<Transform> make_affine() {
  return std::make_unique<Affine>();
}

}  // namespace precast::data
