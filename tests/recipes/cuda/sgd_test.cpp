// Built twice: for the host (kernels_test) and for a GPU (kernels_gpu_test).
#include "recipes/cuda/sgd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>

#include "tests/support/float_types.h"

namespace precast::recipes {
namespace {

using test::F32;
using test::GuardedArray;
using test::random_values;
using test::rounded;
using test::ValueTypes;

/// No element, one element, and sizes around a pack of 4, a block's threads and a chunk.
constexpr std::size_t kCounts[] = {1, 3, 4, 5, 0, 257, 1023, 8192, 8193, 20'003};

struct Options {
  bool nesterov = false;
  bool velocity = true;
  double lr = 0.1, momentum = 0.9, scale = 1, clip = 1, found_inf = 0;
  /// Number of elements before the first one. With 1 or 2, the address of the first one is not a
  /// multiple of 16.
  std::size_t offset = 0;
};

/// A parameter in double precision.
struct Exact {
  double weight_decay = 0;
  std::vector<double> parameter, gradient, velocity;

  void step(const Options& options) {
    if (options.found_inf != 0) return;
    for (std::size_t i = 0; i < parameter.size(); ++i) {
      double change = gradient[i] / options.scale * options.clip + weight_decay * parameter[i];
      if (options.velocity) {
        velocity[i] = options.momentum * velocity[i] + change;
        change = options.nesterov ? change + options.momentum * velocity[i] : velocity[i];
      }
      parameter[i] -= options.lr * change;
    }
  }
};

/// A part of an array on the device, with guards before and after it.
template <typename Type>
class Part {
 public:
  Part(const std::vector<double>& values, std::size_t offset)
      : offset_(offset), memory_(shifted(values, offset)) {}
  [[nodiscard]] typename Type::Value* data() const { return memory_.data() + offset_; }
  [[nodiscard]] std::vector<double> values() const {
    const std::vector<double> all = memory_.values();
    for (std::size_t i = 0; i < offset_; ++i)
      EXPECT_TRUE(std::isnan(all[i])) << "written before the first value";
    return {all.begin() + static_cast<std::ptrdiff_t>(offset_), all.end()};
  }

 private:
  static std::vector<double> shifted(std::vector<double> values, std::size_t offset) {
    values.insert(values.begin(), offset, NAN);
    return values;
  }
  std::size_t offset_;
  GuardedArray<Type> memory_;
};

/// A parameter on the device.
template <typename Type>
struct Memory {
  Part<F32> parameter, velocity;
  Part<Type> gradient;
  Memory(const Exact& exact, std::size_t offset)
      : parameter(exact.parameter, offset),
        velocity(exact.velocity, offset),
        gradient(exact.gradient, offset) {}

  [[nodiscard]] SgdTensor tensor(const Exact& exact, const Options& options) const {
    return {.parameter = parameter.data(),
            .gradient = gradient.data(),
            .velocity = options.velocity ? velocity.data() : nullptr,
            .count = static_cast<std::int64_t>(exact.parameter.size()),
            .weight_decay = static_cast<float>(exact.weight_decay),
            .gradient_type = Type::kType};
  }
};

/// All parameters on the device.
template <typename Type>
class Parameters {
 public:
  Parameters(const std::vector<Exact>& exact, const Options& options) {
    for (const Exact& of : exact) {
      memory_.emplace_back(of, options.offset);
      tensors_.push_back(memory_.back().tensor(of, options));
    }
  }
  [[nodiscard]] SgdTensors tensors() const { return tensors_; }
  [[nodiscard]] const Memory<Type>& operator[](std::size_t i) const { return memory_[i]; }

 private:
  std::deque<Memory<Type>> memory_;
  std::vector<SgdTensor> tensors_;
};

test::DeviceArray<float> one_value(double value) {
  return test::DeviceArray<float>(std::vector<float>{static_cast<float>(value)});
}

template <typename Type>
class SgdKernelTest : public test::DeviceTest {
 protected:
  static std::vector<Exact> parameters(double scale = 1) {
    std::vector<Exact> made;
    std::uint32_t seed = 1;
    for (const std::size_t count : kCounts) {
      Exact& exact = made.emplace_back();
      exact.weight_decay = seed % 3 == 0 ? 0 : double{0.01F * static_cast<float>(seed)};
      exact.parameter = rounded<F32>(random_values(count, seed, 0.1, 1));
      exact.gradient = rounded<Type>(random_values(count, seed + 1, 0.1, scale));
      exact.velocity = rounded<F32>(random_values(count, seed + 2, 0, 2));
      seed += 4;
    }
    return made;
  }
  static void step(const Parameters<Type>& parameters, const Options& options) {
    const auto lr = one_value(options.lr), scale = one_value(options.scale),
               clip = one_value(options.clip), found_inf = one_value(options.found_inf);
    sgd_step(parameters.tensors(),
             {.lr_on_device = lr.data(),
              .momentum = static_cast<float>(options.momentum),
              .nesterov = options.nesterov,
              .grad_scale = scale.data(),
              .clip = clip.data(),
              .found_inf = found_inf.data()},
             nullptr);
  }
  static void expect_near(const std::vector<double>& values, const std::vector<double>& exact) {
    ASSERT_EQ(values.size(), exact.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], exact[i], 1e-6 * (1 + std::abs(exact[i])))
          << i << " of " << values.size();
  }
  static void expect_exact_step(const Options& options) {
    const std::vector<Exact> before = parameters(options.scale);
    std::vector<Exact> exact = before;
    for (Exact& of : exact) of.step(options);
    test::in_several_orders([&] {
      const Parameters<Type> memory(before, options);
      step(memory, options);
      for (std::size_t i = 0; i < exact.size(); ++i) {
        expect_near(memory[i].parameter.values(), exact[i].parameter);
        expect_near(memory[i].velocity.values(),
                    options.velocity ? exact[i].velocity : before[i].velocity);
        EXPECT_EQ(memory[i].gradient.values(), before[i].gradient);
      }
    });
  }
};
TYPED_TEST_SUITE(SgdKernelTest, ValueTypes);

TYPED_TEST(SgdKernelTest, IsCloseToDoublePrecisionForAnySize) {
  TestFixture::expect_exact_step({});
  TestFixture::expect_exact_step({.nesterov = true, .momentum = 0.5, .scale = 1024, .clip = 0.3});
}

TYPED_TEST(SgdKernelTest, UpdatesWithoutMomentum) {
  TestFixture::expect_exact_step({.velocity = false});
}

TYPED_TEST(SgdKernelTest, ArraysMayBeginAnywhere) {
  TestFixture::expect_exact_step({.nesterov = true, .offset = 1});
  TestFixture::expect_exact_step({.offset = 2});
}

TYPED_TEST(SgdKernelTest, AStepWithFoundInfChangesNothing) {
  const Options options{.found_inf = 1};
  const std::vector<Exact> before = TestFixture::parameters();
  test::in_several_orders([&] {
    const Parameters<TypeParam> memory(before, options);
    TestFixture::step(memory, options);
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(memory[i].parameter.values(), before[i].parameter);
      EXPECT_EQ(memory[i].velocity.values(), before[i].velocity);
    }
  });
}

TYPED_TEST(SgdKernelTest, ANanGradientChangesItsOwnParameterOnly) {
  std::vector<Exact> before = TestFixture::parameters();
  const std::size_t last = before.size() - 1;
  before[last].gradient.back() = NAN;
  test::in_several_orders([&] {
    const Parameters<TypeParam> memory(before, {});
    TestFixture::step(memory, {});
    std::vector<double> values = memory[last].parameter.values();
    EXPECT_TRUE(std::isnan(values.back()));
    values.pop_back();
    for (const double value : values) ASSERT_TRUE(std::isfinite(value));
  });
}

struct Norm {
  float norm, clip, found_inf;
};

template <typename Type>
class GradientNormKernelTest : public SgdKernelTest<Type> {
 protected:
  /// Calls check(norm) for each order of threads.
  template <typename Check>
  void run(const std::vector<Exact>& exact, double scale, double max_norm, Check check) {
    const auto grad_scale = one_value(scale);
    for (const std::size_t offset : {std::size_t{0}, std::size_t{1}}) {
      const Parameters<Type> parameters(exact, {.offset = offset});
      test::in_several_orders([&] {
        const test::DeviceArray<float> norm(1), clip(1), found_inf(1);
        const auto workspace =
            test::device_memory(gradient_norm_workspace_bytes(parameters.tensors()));
        gradient_norm(parameters.tensors(),
                      {.grad_scale = grad_scale.data(),
                       .max_norm = static_cast<float>(max_norm),
                       .norm = norm.data(),
                       .clip = clip.data(),
                       .found_inf = found_inf.data(),
                       .workspace = workspace.get()},
                      nullptr);
        check(Norm{norm.values()[0], clip.values()[0], found_inf.values()[0]});
      });
    }
  }
};
TYPED_TEST_SUITE(GradientNormKernelTest, ValueTypes);

TYPED_TEST(GradientNormKernelTest, IsTheNormOfAllGradients) {
  const std::vector<Exact> exact = TestFixture::parameters(64);
  double squares = 0;
  for (const Exact& of : exact)
    for (const double value : of.gradient) squares += value / 64 * (value / 64);
  const double expected = std::sqrt(squares);
  this->run(exact, 64, 0.5 * expected, [&](const Norm& got) {
    EXPECT_NEAR(got.norm, expected, 2e-6 * expected);
    EXPECT_NEAR(got.clip, 0.5, 1e-5);
    EXPECT_EQ(got.found_inf, 0);
  });
  this->run(exact, 64, 2 * expected, [&](const Norm& got) { EXPECT_EQ(got.clip, 1); });
}

TYPED_TEST(GradientNormKernelTest, DoesNotDependOnTheOrderOfThreads) {
  const std::vector<Exact> exact = TestFixture::parameters();
  const Parameters<TypeParam> parameters(exact, {});
  std::optional<float> first;
  test::in_several_orders([&] {
    const test::DeviceArray<float> norm(1), clip(1);
    const auto workspace = test::device_memory(gradient_norm_workspace_bytes(parameters.tensors()));
    gradient_norm(parameters.tensors(),
                  {.norm = norm.data(), .clip = clip.data(), .workspace = workspace.get()},
                  nullptr);
    if (!first) first = norm.values()[0];
    EXPECT_EQ(norm.values()[0], *first);
  });
}

TYPED_TEST(GradientNormKernelTest, FindsTheOnlyInfinityOrNan) {
  for (std::size_t i = 0; i < std::size(kCounts); ++i) {
    std::vector<Exact> exact = TestFixture::parameters();
    if (exact[i].gradient.empty()) continue;
    (i % 4 < 2 ? exact[i].gradient.front() : exact[i].gradient.back()) =
        i % 2 == 0 ? -std::numeric_limits<double>::infinity()
                   : std::numeric_limits<double>::quiet_NaN();
    this->run(exact, 1, 1, [&](const Norm& got) { EXPECT_EQ(got.found_inf, 1); });
  }
}

using GradientNormKernelLimitsTest = GradientNormKernelTest<F32>;
/// torch does the same: if the norm of finite gradients is infinite, clipping sets them to 0.
TEST_F(GradientNormKernelLimitsTest, TooLargeANormIsNoInfinity) {
  std::vector<Exact> exact = parameters();
  exact[5].gradient[3] = double{std::numeric_limits<float>::max()};
  run(exact, 1, 1, [&](const Norm& got) {
    EXPECT_TRUE(std::isinf(got.norm));
    EXPECT_EQ(got.clip, 0);
    EXPECT_EQ(got.found_inf, 0);
  });
}

using SgdTensorsTest = test::DeviceTest;
/// Tests more tensors than fit into a launch, of different sizes. The gradient of each tensor has a
/// different value.
TEST_F(SgdTensorsTest, AnyNumberOfTensorsIsUpdatedAndCounted) {
  for (const std::size_t count :
       {std::size_t{1}, kSgdMostTensors, kSgdMostTensors + 1, 2 * kSgdMostTensors + 5}) {
    std::vector<SgdTensor> tensors;
    std::deque<test::DeviceArray<float>> parameters, gradients;
    double squares = 0;
    for (std::size_t i = 0; i < count; ++i) {
      // Some tensors are empty, and one consists of several chunks.
      const std::size_t size = i == 150 ? std::size_t{3 * kSgdChunkSize + 1} : i % 4;
      const auto value = static_cast<float>(i + 1);
      parameters.emplace_back(std::vector<float>(size, 1));
      gradients.emplace_back(std::vector<float>(size, value));
      squares += static_cast<double>(size) * value * value;
      tensors.push_back({.parameter = parameters.back().data(),
                         .gradient = gradients.back().data(),
                         .count = static_cast<std::int64_t>(size)});
    }
    const test::DeviceArray<float> norm(1);
    const auto workspace = test::device_memory(gradient_norm_workspace_bytes(tensors));
    int steps = 0;
    test::in_several_orders([&] {
      ++steps;
      gradient_norm(tensors, {.norm = norm.data(), .workspace = workspace.get()}, nullptr);
      sgd_step(tensors, {.lr = 0.5F}, nullptr);
    });
    EXPECT_NEAR(norm.values()[0], std::sqrt(squares), 1e-5 * std::sqrt(squares));
    for (std::size_t i = 0; i < count; ++i)
      for (const float value : parameters[i].values())
        ASSERT_EQ(value, 1 - 0.5F * static_cast<float>(steps) * static_cast<float>(i + 1)) << i;
  }
}

TEST_F(SgdTensorsTest, NoParametersHaveNoNorm) {
  sgd_step({}, {}, nullptr);
  const test::DeviceArray<float> norm(1), clip(1);
  gradient_norm({}, {.norm = norm.data(), .clip = clip.data()}, nullptr);
  test::in_several_orders([] {});
  EXPECT_EQ(norm.values()[0], 0);
  EXPECT_EQ(clip.values()[0], 1);
}

}  // namespace
}  // namespace precast::recipes
