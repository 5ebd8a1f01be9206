#include "data/transforms/gaussian_blur.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "data/transforms/options.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr int kMaxKernelSize = 255;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// The weights of torchvision: the normal density at integer distances in px from the middle,
/// scaled to a sum of 1.
void fill_weights(double sigma, std::span<float> weights) {
  const auto size = static_cast<double>(weights.size());
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double x = static_cast<double>(i) - (size - 1) / 2;
    const double weight = std::exp(-x * x / (2 * sigma * sigma));
    weights[i] = static_cast<float>(weight);
    sum += weight;
  }
  for (float& weight : weights) weight /= static_cast<float>(sum);
}

/// Index of position `i` in a line of `size` that is mirrored at both ends, without repeating the
/// end pixels.
int reflect_index(int i, int size) {
  if (i < 0) return -i;
  return i < size ? i : 2 * size - 2 - i;
}

/// row += weight * source, over a whole line.
void add_weighted(const std::uint8_t* source, float weight, std::ptrdiff_t count, float* row) {
  for (std::ptrdiff_t i = 0; i < count; ++i) row[i] += weight * static_cast<float>(source[i]);
}

/// Sums along x; `row` has `radius` mirrored pixels on either side.
void blur_row(const float* row, std::span<const float> weights, std::ptrdiff_t count, float* sums,
              std::uint8_t* out) {
  std::fill(sums, sums + count, 0.0F);
  for (std::size_t t = 0; t < weights.size(); ++t) {
    const float* const from = row + 3 * t;
    for (std::ptrdiff_t i = 0; i < count; ++i) sums[i] += weights[t] * from[i];
  }
  // Adding and subtracting this number rounds to nearest even, because its unit in the last place
  // is 1. The compiler can vectorise these operations.
  constexpr float kToInteger = 12582912.0F;  // 1.5 * 2^23
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    out[i] = static_cast<std::uint8_t>((sums[i] + kToInteger) - kToInteger);
  }
}

class GaussianBlur final : public Transform {
 public:
  void options(Schema& schema) override {
    schema.add("kernel_size", &kernel_size_, "size of the kernel in px, odd")
        .min(1)
        .max(kMaxKernelSize)
        .required();
    schema.add("sigma", &sigma_, "standard deviation in px: [smallest, largest]");
    schema.add("probability", &probability_, "probability that an image is changed").min(0).max(1);
  }

  [[nodiscard]] std::string problem() const override {
    if (kernel_size_ % 2 == 0) {
      return fmt::format("kernel_size: expected an odd number, got {}", kernel_size_);
    }
    return range_problem("sigma", sigma_, 1e-3, 1e3);
  }

  [[nodiscard]] PixelShape output(const PixelShape& in) const override {
    const int shorter = std::min(in.height, in.width);
    if (kernel_size_ / 2 >= shorter) {
      throw ConfigError(
          fmt::format("kernel_size: expected at most {} for images of {} x {} px, got {}",
                      2 * shorter - 1, in.width, in.height, kernel_size_));
    }
    return in;
  }

  [[nodiscard]] std::size_t scratch_bytes(const PixelShape& in) const override {
    return blur_scratch_bytes(in, static_cast<int>(kernel_size_));
  }

  void apply(const Pixels& image, TransformContext& context) const override {
    const bool chosen = context.random.uniform() < probability_;
    const double sigma = context.random.uniform(sigma_[0], sigma_[1]);
    if (chosen) gaussian_blur(image, static_cast<int>(kernel_size_), sigma, context.scratch);
  }

 private:
  std::int64_t kernel_size_ = 1;
  std::vector<double> sigma_ = {0.1, 2.0};
  double probability_ = 1;
};

}  // namespace

std::size_t blur_scratch_bytes(const PixelShape& shape, int kernel_size) {
  const auto padded = static_cast<std::size_t>(shape.width + kernel_size - 1) * 3;
  const auto row = static_cast<std::size_t>(shape.width) * 3;
  return aligned(shape.values()) + aligned(padded * sizeof(float)) + aligned(row * sizeof(float));
}

void gaussian_blur(const Pixels& image, int kernel_size, double sigma,
                   std::span<std::byte> scratch) {
  std::array<float, kMaxKernelSize> all_weights{};
  const std::span<float> weights(all_weights.data(), static_cast<std::size_t>(kernel_size));
  fill_weights(sigma, weights);
  const int radius = kernel_size / 2;
  const auto [height, width, channels] = image.shape;
  const std::ptrdiff_t stride = image.row_values();

  std::memcpy(scratch.data(), image.data, image.shape.values());
  const auto* const copy = reinterpret_cast<const std::uint8_t*>(scratch.data());
  auto* const padded = reinterpret_cast<float*>(scratch.data() + aligned(image.shape.values()));
  const auto padded_values = static_cast<std::size_t>(width + kernel_size - 1) * 3;
  float* const sums = padded + aligned(padded_values * sizeof(float)) / sizeof(float);
  float* const row = padded + std::ptrdiff_t{3} * radius;
  for (int y = 0; y < height; ++y) {
    std::fill(row, row + stride, 0.0F);
    for (int t = 0; t < kernel_size; ++t) {
      const int from = reflect_index(y + t - radius, height);
      add_weighted(copy + from * stride, weights[static_cast<std::size_t>(t)], stride, row);
    }
    for (int x = 1; x <= radius; ++x) {
      std::copy_n(row + std::ptrdiff_t{3} * reflect_index(-x, width), 3,
                  row - std::ptrdiff_t{3} * x);
      std::copy_n(row + std::ptrdiff_t{3} * reflect_index(width - 1 + x, width), 3,
                  row + std::ptrdiff_t{3} * (width - 1 + x));
    }
    blur_row(padded, weights, stride, sums, image.row(y));
  }
}

std::unique_ptr<Transform> make_gaussian_blur() {
  return std::make_unique<GaussianBlur>();
}

}  // namespace precast::data
