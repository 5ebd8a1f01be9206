#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "models/cuda/batch_norm.h"
#include "tests/support/float_types.h"
#include "tests/support/kernel_device.h"

namespace precast::test {

// Batch norm in training mode, for tests of the kernels that compute it.

struct NormSize {
  int rows;
  int channels;
};
/// Odd sizes, channels that do and do not fill a pack of 8 or a block, one and several chunks.
inline constexpr NormSize kNormSizes[] = {{2, 1},  {2, 8},   {3, 3},    {7, 16},    {49, 264},
                                          {50, 5}, {255, 9}, {1000, 8}, {4099, 24}, {20'011, 2}};

/// A batch norm, or one of two that are added: its inputs, rounded to the types that the kernels
/// read, and its results in double precision.
struct ReferenceNorm {
  static constexpr double kEps = 1e-5F, kMomentum = 0.1F;

  std::vector<double> x, weight, bias, running_mean, running_var;
  std::vector<double> mean, inv_std, normalized, dx, d_weight, d_bias, new_mean, new_var;

  ReferenceNorm() = default;
  /// Draws the parameters and the running statistics from the streams `seed` to `seed` + 3.
  ReferenceNorm(std::vector<double> input, std::size_t channels, std::uint32_t seed)
      : x(std::move(input)),
        weight(rounded<F32>(random_values(channels, seed, 1, 0.3))),
        bias(rounded<F32>(random_values(channels, seed + 1, 0, 0.3))),
        running_mean(rounded<F32>(random_values(channels, seed + 2, 0, 1))),
        running_var(rounded<F32>(random_values(channels, seed + 3, 1, 0.1))) {}

  [[nodiscard]] std::size_t channels() const { return weight.size(); }
  [[nodiscard]] double rows() const {
    return static_cast<double>(x.size()) / static_cast<double>(channels());
  }
  [[nodiscard]] models::BatchNormShape shape(FloatType type) const {
    return {static_cast<std::int64_t>(x.size() / channels()), static_cast<int>(channels()), type};
  }

  /// Computes the statistics and `normalized`.
  void normalize() {
    normalized.assign(x.size(), 0);
    for (auto* values : {&mean, &inv_std, &new_mean, &new_var}) values->assign(channels(), 0);
    for (std::size_t c = 0; c < channels(); ++c) {
      double sum = 0, squares = 0;
      for (std::size_t i = c; i < x.size(); i += channels()) sum += x[i];
      mean[c] = sum / rows();
      for (std::size_t i = c; i < x.size(); i += channels())
        squares += (x[i] - mean[c]) * (x[i] - mean[c]);
      inv_std[c] = 1 / std::sqrt(squares / rows() + kEps);
      new_mean[c] = running_mean[c] + kMomentum * (mean[c] - running_mean[c]);
      new_var[c] = running_var[c] + kMomentum * (squares / (rows() - 1) - running_var[c]);
      for (std::size_t i = c; i < x.size(); i += channels())
        normalized[i] = (x[i] - mean[c]) * inv_std[c];
    }
  }
  [[nodiscard]] double y(std::size_t i) const {
    return normalized[i] * weight[i % channels()] + bias[i % channels()];
  }
  /// Computes dx, d_weight and d_bias from the gradient of y.
  void differentiate(const std::vector<double>& gradient) {
    dx.assign(x.size(), 0);
    for (auto* values : {&d_weight, &d_bias}) values->assign(channels(), 0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      d_bias[i % channels()] += gradient[i];
      d_weight[i % channels()] += gradient[i] * normalized[i];
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t c = i % channels();
      dx[i] = weight[c] * inv_std[c] *
              (gradient[i] - d_bias[c] / rows() - normalized[i] * d_weight[c] / rows());
    }
  }
};

/// The memory of a batch norm on the device.
template <typename Type>
struct DeviceNorm {
  GuardedArray<Type> x, dx;
  DeviceArray<float> weight, bias, running_mean, running_var, mean, inv_std, d_weight, d_bias;
  std::shared_ptr<void> workspace;

  DeviceNorm(const ReferenceNorm& side, const models::BatchNormShape& shape)
      : x(side.x),
        dx(side.x.size()),
        weight(floats_of(side.weight)),
        bias(floats_of(side.bias)),
        running_mean(floats_of(side.running_mean)),
        running_var(floats_of(side.running_var)),
        mean(side.channels()),
        inv_std(side.channels()),
        d_weight(side.channels()),
        d_bias(side.channels()),
        workspace(device_memory(models::batch_norm_workspace_bytes(shape))) {}
  [[nodiscard]] models::BatchNormForward forward() const {
    return {.x = x.data(),
            .weight = weight.data(),
            .bias = bias.data(),
            .running_mean = running_mean.data(),
            .running_var = running_var.data(),
            .mean = mean.data(),
            .inv_std = inv_std.data(),
            .workspace = workspace.get()};
  }
  [[nodiscard]] models::BatchNormBackward backward() const {
    return {.x = x.data(),
            .weight = weight.data(),
            .bias = bias.data(),
            .mean = mean.data(),
            .inv_std = inv_std.data(),
            .dx = dx.data(),
            .d_weight = d_weight.data(),
            .d_bias = d_bias.data(),
            .workspace = workspace.get()};
  }
};

struct NormResults {
  std::vector<double> dx;
  std::vector<float> mean, inv_std, running_mean, running_var, d_weight, d_bias;

  template <typename Type>
  explicit NormResults(const DeviceNorm<Type>& side)
      : dx(side.dx.values()),
        mean(side.mean.values()),
        inv_std(side.inv_std.values()),
        running_mean(side.running_mean.values()),
        running_var(side.running_var.values()),
        d_weight(side.d_weight.values()),
        d_bias(side.d_bias.values()) {}
  bool operator==(const NormResults&) const = default;
};

template <typename Type>
void expect_close(const ReferenceNorm& given, const NormResults& results) {
  for (std::size_t c = 0; c < given.channels(); ++c) {
    const double spread = 1 / given.inv_std[c];
    ASSERT_NEAR(results.mean[c], given.mean[c], 2e-6 * (spread + std::abs(given.mean[c])));
    ASSERT_NEAR(results.inv_std[c], given.inv_std[c], 1e-5 * given.inv_std[c]);
    ASSERT_NEAR(results.running_mean[c], given.new_mean[c], 2e-6 * (1 + std::abs(given.mean[c])));
    ASSERT_NEAR(results.running_var[c], given.new_var[c], 1e-5 * (1 + given.new_var[c]));
    ASSERT_NEAR(results.d_bias[c], given.d_bias[c], 2e-6 * given.rows()) << "channel " << c;
    ASSERT_NEAR(results.d_weight[c], given.d_weight[c], 4e-6 * given.rows()) << "channel " << c;
  }
  for (std::size_t i = 0; i < results.dx.size(); ++i) {
    const std::size_t c = i % given.channels();
    // With two rows, the exact gradient is a small difference of large terms.
    const double scale = std::abs(given.weight[c]) * given.inv_std[c];
    ASSERT_NEAR(results.dx[i], given.dx[i], near<Type>(given.dx[i]) + 4e-5 * scale) << "dx " << i;
  }
}

}  // namespace precast::test
