#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "framework/core/float_type.h"
#include "tests/support/kernel_device.h"

namespace precast::test {

// Floating-point types for tests of kernels.

struct F32 {
  using Value = float;
  static constexpr FloatType kType = FloatType::f32;
  /// The largest relative error of rounding to the type.
  static constexpr double kRounding = 0x1p-24;
  static Value of(double value) { return static_cast<float>(value); }
  static double to(Value value) { return double{value}; }
};
struct F16 {
  using Value = __half;
  static constexpr FloatType kType = FloatType::f16;
  static constexpr double kRounding = 0x1p-11;
  static Value of(double value) { return __float2half_rn(static_cast<float>(value)); }
  static double to(Value value) { return double{__half2float(value)}; }
};
struct Bf16 {
  using Value = __nv_bfloat16;
  static constexpr FloatType kType = FloatType::bf16;
  static constexpr double kRounding = 0x1p-8;
  static Value of(double value) { return __float2bfloat16_rn(static_cast<float>(value)); }
  static double to(Value value) { return double{__bfloat162float(value)}; }
};
using ValueTypes = ::testing::Types<F32, F16, Bf16>;

inline std::vector<double> random_values(std::size_t count, std::uint32_t seed, double mean,
                                         double std) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(mean, std);
  std::vector<double> values(count);
  for (double& value : values) value = normal(random);
  return values;
}

/// An array on the device, followed by values that a kernel must not overwrite.
template <typename Type>
class GuardedArray {
 public:
  using Value = typename Type::Value;

  explicit GuardedArray(std::size_t count) : count_(count), memory_(count + kGuard) {}
  explicit GuardedArray(const std::vector<double>& values)
      : count_(values.size()), memory_(guarded(values)) {}
  [[nodiscard]] Value* data() const { return memory_.data(); }
  [[nodiscard]] std::vector<double> values() const {
    const auto all = memory_.values();
    for (std::size_t i = count_; i < all.size(); ++i)
      EXPECT_TRUE(std::isnan(Type::to(all[i]))) << "written after the last value";
    std::vector<double> values;
    for (std::size_t i = 0; i < count_; ++i) values.push_back(Type::to(all[i]));
    return values;
  }

 private:
  static constexpr std::size_t kGuard = 16;
  static std::vector<Value> guarded(const std::vector<double>& values) {
    std::vector<Value> result;
    for (const double value : values) result.push_back(Type::of(value));
    result.resize(values.size() + kGuard, Type::of(NAN));
    return result;
  }

  std::size_t count_;
  DeviceArray<Value> memory_;
};

/// Rounds the values to the type.
template <typename Type>
std::vector<double> rounded(std::vector<double> values) {
  for (double& value : values) value = Type::to(Type::of(value));
  return values;
}
inline std::vector<float> floats_of(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

/// The bound of a kernel's error: one rounding to the type, and a little for values near 0.
template <typename Type>
double near(double value) {
  return std::abs(value) * Type::kRounding * 1.01 + 1e-7;
}
/// Compares with double precision. @param slack is added to the bound of each value
template <typename Type>
void expect_near(const char* what, const std::vector<double>& values,
                 const std::vector<double>& exact, double slack = 0) {
  ASSERT_EQ(values.size(), exact.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], exact[i], near<Type>(exact[i]) + slack) << what << " " << i;
}

}  // namespace precast::test
