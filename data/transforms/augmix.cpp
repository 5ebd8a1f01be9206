#include "data/transforms/augmix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "data/transforms/augmentation.h"
#include "framework/core/random_variables.h"

namespace precast::data {
namespace {

using namespace augmentation;

/// In Composer's order. The last four are not in the set `safe`.
constexpr std::array<std::size_t, 13> kOperations = {
    auto_contrast, equalizing,  posterizing, rotation, solarizing, shear_x,  shear_y,
    translate_x,   translate_y, color,       contrast, brightness, sharpness};
constexpr std::size_t kSafe = 9;

/// Weights are integers, so that results are the same on every CPU and the weights add up to
/// exactly one.
constexpr std::int32_t kOne = 65536;

class AugMix final : public Transform {
 public:
  void options(Schema& schema) override {
    schema.add("severity", &severity_, "largest strength of an operation").min(1).max(10);
    schema.add("depth", &depth_, "number of operations in each chain; -1: 1 to 3 at random")
        .min(-1)
        .max(100);
    schema.add("width", &width_, "number of chains").min(1).max(100);
    schema.add("alpha", &alpha_, "parameter of the Beta and Dirichlet distributions").above(0);
    schema
        .add(
            "augmentation_set", &set_,
            "operations: all; safe: without the corruptions of ImageNet-C; original: all, with the "
            "strengths of the authors' code")
        .choices({"all", "safe", "original"});
  }
  [[nodiscard]] std::string problem() const override {
    return depth_ == 0 ? "depth: expected 1 or more, or -1, got 0" : "";
  }
  [[nodiscard]] bool blends_moved_copies() const override { return true; }
  /// The sums, a chain's copy, and the scratch memory of an operation.
  [[nodiscard]] std::size_t scratch_bytes(const PixelShape& in) const override {
    return in.values() * (sizeof(std::uint32_t) + 2);
  }

  void apply(const Pixels& image, TransformContext& context) const override {
    const std::size_t count = image.shape.values();
    auto* const sums = reinterpret_cast<std::uint32_t*>(context.scratch.data());
    auto* const copy =
        reinterpret_cast<std::uint8_t*>(context.scratch.data()) + count * sizeof(std::uint32_t);
    const std::span<std::byte> scratch =
        context.scratch.subspan(count * (sizeof(std::uint32_t) + 1));
    const std::vector<std::int32_t> weights = augmix_weights(context.random, width_, alpha_);
    std::fill_n(sums, count, std::uint32_t{kOne / 2});
    std::int32_t rest = kOne;
    for (const std::int32_t weight : weights) {
      std::memcpy(copy, image.data, count);
      run_chain({copy, image.shape}, context.random, scratch);
      add(copy, weight, sums, count);
      rest -= weight;
    }
    add(image.data, rest, sums, count);
    for (std::size_t i = 0; i < count; ++i)
      image.data[i] = static_cast<std::uint8_t>(sums[i] / kOne);
  }

 private:
  void run_chain(const Pixels& image, RandomStream& random, std::span<std::byte> scratch) const {
    const std::size_t operations = set_ == "safe" ? kSafe : kOperations.size();
    const std::int64_t depth = depth_ > 0 ? depth_ : 1 + static_cast<std::int64_t>(random.below(3));
    for (std::int64_t n = 0; n < depth; ++n) {
      const std::size_t operation = kOperations[random.below(operations)];
      const double first = random.uniform();
      const double second = random.uniform();
      const double magnitude = augmix_magnitude(operation, static_cast<int>(severity_),
                                                set_ == "original", {first, second}, image.shape);
      apply_augmentation(image, operation, magnitude, {Interpolation::bilinear, {}}, scratch);
    }
  }

  /// Rounding may make the image's weight slightly negative, such as -1; the unsigned sums then
  /// wrap around and back.
  static void add(const std::uint8_t* values, std::int32_t weight, std::uint32_t* sums,
                  std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      sums[i] += static_cast<std::uint32_t>(weight) * values[i];
  }

  std::int64_t severity_ = 3;
  std::int64_t depth_ = -1;
  std::int64_t width_ = 3;
  double alpha_ = 1;
  std::string set_ = "all";
};

/// Returns the factor for color, contrast, brightness or sharpness.
double factor_of(std::size_t operation, int severity, std::array<double, 2> draws) {
  if (draws[0] <= 0.5) return 1 - 0.09 * severity * (1 - draws[1]);
  const double factor = 1 + (severity - 1) * draws[1];
  return operation == brightness && factor > 1 ? 0.75 * factor : factor;
}

}  // namespace

double augmix_magnitude(std::size_t operation, int severity, bool original,
                        std::array<double, 2> draws, const PixelShape& shape) {
  const double level = 0.1 + (severity - 0.1) * draws[0];
  const double sign = draws[1] > 0.5 ? -1 : 1;
  const auto scaled_level = [&](double max_value) { return std::trunc(level * max_value / 10); };
  switch (operation) {
    case posterizing:
      return 4 - scaled_level(4);
    case solarizing:
      // 0.5 puts the threshold halfway between two pixel values, so rounding of magnitude * 255 has
      // no effect.
      return (256 - scaled_level(256) - 0.5) / 255;
    case rotation:
      return sign * scaled_level(30);
    case translate_x:
      return sign * scaled_level(shape.width / 3.0);
    case translate_y:
      return sign * scaled_level(shape.height / 3.0);
    case shear_x:
    case shear_y:
      return sign * level * 0.3 / 10;
    case color:
    case contrast:
    case brightness:
    case sharpness:
      return (original ? level * 1.8 / 10 + 0.1 : factor_of(operation, severity, draws)) - 1;
    default:
      return 0;
  }
}

std::vector<std::int32_t> augmix_weights(RandomStream& random, std::int64_t width, double alpha) {
  std::vector<double> shares;
  for (std::int64_t i = 0; i < width; ++i) shares.push_back(log_random_gamma(random, alpha));
  const double largest = *std::ranges::max_element(shares);
  double sum = 0;
  for (double& share : shares) sum += share = std::exp(share - largest);
  const double mixed = random_beta(random, alpha);
  std::vector<std::int32_t> weights;
  for (const double share : shares)
    weights.push_back(static_cast<std::int32_t>(std::lround(kOne * mixed * share / sum)));
  return weights;
}

std::unique_ptr<Transform> make_augmix() {
  return std::make_unique<AugMix>();
}

}  // namespace precast::data
