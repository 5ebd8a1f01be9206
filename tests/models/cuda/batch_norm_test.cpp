// Built twice: for the host (kernels_test) and for a GPU (kernels_gpu_test).
#include "models/cuda/batch_norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "tests/support/float_types.h"

namespace precast::models {
namespace {

using test::F32;
using test::GuardedArray;
using test::random_values;
using test::rounded;
using test::ValueTypes;

/// The operations to compute in addition to the norm.
struct Options {
  bool relu = true;
  bool residual = false;
  bool fork = false;
};

struct Size {
  int rows;
  int channels;
};
/// Odd sizes, channels that do and do not fill a pack of 8 or a block, one and several chunks.
constexpr Size kSizes[] = {{2, 1},  {2, 8},   {3, 3},    {7, 16},    {49, 264},
                           {50, 5}, {255, 9}, {1000, 8}, {4099, 24}, {20'011, 2}};

/// The inputs, rounded to the types that the kernels read, and the results in double precision.
struct Reference {
  Size size{};
  Options options;
  /// Rounds to the type of the activations.
  double (*round)(double) = nullptr;
  double eps = 1e-5F, momentum = 0.1F;
  std::vector<double> x, residual, dy, fork, weight, bias, running_mean, running_var;
  std::vector<double> mean, inv_std, y, dx, d_residual, d_weight, d_bias, new_mean, new_var;

  [[nodiscard]] std::size_t at(int row, int channel) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(size.channels) +
           static_cast<std::size_t>(channel);
  }

  /// @param passes whether the ReLU passes a value; by default, whether it is positive
  void compute(const std::vector<bool>* passes = nullptr) {
    const auto channels = static_cast<std::size_t>(size.channels);
    for (auto* values : {&y, &dx, &d_residual}) values->assign(x.size(), 0);
    for (auto* values : {&mean, &inv_std, &d_weight, &d_bias, &new_mean, &new_var})
      values->assign(channels, 0);
    for (int c = 0; c < size.channels; ++c) compute_channel(c, passes);
  }

 private:
  void compute_channel(int c, const std::vector<bool>* passes) {
    const auto i = static_cast<std::size_t>(c);
    double sum = 0, squares = 0;
    for (int row = 0; row < size.rows; ++row) sum += x[at(row, c)];
    mean[i] = sum / size.rows;
    for (int row = 0; row < size.rows; ++row)
      squares += (x[at(row, c)] - mean[i]) * (x[at(row, c)] - mean[i]);
    inv_std[i] = 1 / std::sqrt(squares / size.rows + eps);
    new_mean[i] = running_mean[i] + momentum * (mean[i] - running_mean[i]);
    new_var[i] = running_var[i] + momentum * (squares / (size.rows - 1) - running_var[i]);
    for (int row = 0; row < size.rows; ++row) {
      const std::size_t k = at(row, c);
      double value = (x[k] - mean[i]) * inv_std[i] * weight[i] + bias[i];
      if (options.residual) value += residual[k];
      const bool passed = !options.relu || (passes != nullptr ? (*passes)[k] : value > 0);
      y[k] = passed ? value : 0;
      d_residual[k] = passed ? dy[k] + (options.fork ? fork[k] : 0) : 0;
      // The kernels compute the other gradients from the residual's gradient that they have
      // written.
      if (options.residual) d_residual[k] = round(d_residual[k]);
      d_bias[i] += d_residual[k];
      d_weight[i] += d_residual[k] * (x[k] - mean[i]) * inv_std[i];
    }
    for (int row = 0; row < size.rows; ++row) {
      const std::size_t k = at(row, c);
      dx[k] = weight[i] * inv_std[i] *
              (d_residual[k] - d_bias[i] / size.rows -
               (x[k] - mean[i]) * inv_std[i] * d_weight[i] / size.rows);
    }
  }
};

template <typename Type>
class BatchNormKernelTest : public ::testing::Test {
 protected:
  using Memory = GuardedArray<Type>;
  using Floats = test::DeviceArray<float>;

  void SetUp() override {
    if (const std::string reason = test::missing_device(); !reason.empty()) GTEST_SKIP() << reason;
  }

  static Reference reference(const Size& size, const Options& options, double mean = 0.5,
                             double std = 2) {
    const auto channels = static_cast<std::size_t>(size.channels);
    const std::size_t count = static_cast<std::size_t>(size.rows) * channels;
    Reference made;
    made.size = size;
    made.options = options;
    made.round = [](double value) { return Type::to(Type::of(value)); };
    made.x = rounded<Type>(random_values(count, 1, mean, std));
    made.residual = rounded<Type>(random_values(count, 2, 0, 1));
    made.dy = rounded<Type>(random_values(count, 3, 0.1, 1));
    made.fork = rounded<Type>(random_values(count, 4, 0, 1));
    made.weight = as_float(random_values(channels, 5, 1, 0.3));
    made.bias = as_float(random_values(channels, 6, 0, 0.3));
    made.running_mean = as_float(random_values(channels, 7, 0, 1));
    made.running_var = as_float(random_values(channels, 8, 1, 0.1));
    made.compute();
    return made;
  }
  static std::vector<double> as_float(std::vector<double> values) {
    for (double& value : values) value = double{static_cast<float>(value)};
    return values;
  }

  struct Results {
    std::vector<double> y, dx, d_residual;
    std::vector<float> mean, inv_std, running_mean, running_var, d_weight, d_bias;
  };

  /// Calls check(results) for each order of threads.
  template <typename Check>
  void run(const Reference& given, Check check) {
    const BatchNormShape shape{given.size.rows, given.size.channels, Type::kType};
    const std::size_t count = given.x.size();
    const auto channels = static_cast<std::size_t>(given.size.channels);
    const Options& options = given.options;
    const Memory x(given.x), residual(given.residual), dy(given.dy), fork(given.fork);
    const Floats weight(floats_of(given.weight)), bias(floats_of(given.bias));
    const bool masked = options.residual && options.relu;
    test::in_several_orders([&] {
      const Memory y(count), dx(count), d_residual(count);
      const Floats mean(channels), inv_std(channels), d_weight(channels), d_bias(channels);
      const Floats running_mean(floats_of(given.running_mean)),
          running_var(floats_of(given.running_var));
      const test::DeviceArray<std::uint8_t> mask(batch_norm_mask_bytes(shape));
      const auto workspace = test::device_memory(batch_norm_workspace_bytes(shape));
      batch_norm_forward(shape,
                         {.x = x.data(),
                          .residual = options.residual ? residual.data() : nullptr,
                          .weight = weight.data(),
                          .bias = bias.data(),
                          .relu = options.relu,
                          .running_mean = running_mean.data(),
                          .running_var = running_var.data(),
                          .y = y.data(),
                          .mean = mean.data(),
                          .inv_std = inv_std.data(),
                          .mask = mask.data(),
                          .workspace = workspace.get()},
                         nullptr);
      batch_norm_backward(shape,
                          {.x = x.data(),
                           .dy = dy.data(),
                           .dy_fork = options.fork ? fork.data() : nullptr,
                           .weight = weight.data(),
                           .bias = bias.data(),
                           .mean = mean.data(),
                           .inv_std = inv_std.data(),
                           .relu = options.relu,
                           .mask = masked ? mask.data() : nullptr,
                           .dx = dx.data(),
                           .d_residual = options.residual ? d_residual.data() : nullptr,
                           .d_weight = d_weight.data(),
                           .d_bias = d_bias.data(),
                           .workspace = workspace.get()},
                          nullptr);
      check(Results{y.values(), dx.values(),
                    options.residual ? d_residual.values() : std::vector<double>{}, mean.values(),
                    inv_std.values(), running_mean.values(), running_var.values(),
                    d_weight.values(), d_bias.values()});
    });
  }

  /// Compares with double precision. The ReLUs may decide differently only if a value is almost 0,
  /// so the reference uses the kernels' decisions.
  static void expect_close(Reference given, const Results& results) {
    std::vector<bool> passes;
    for (std::size_t i = 0; i < results.y.size(); ++i) {
      passes.push_back(results.y[i] > 0);
      const double bound = near(given.y[i]) + 1e-5;
      ASSERT_NEAR(results.y[i], given.y[i], bound) << "y " << i;
    }
    given.compute(&passes);
    const double rows = given.size.rows;
    for (std::size_t c = 0; c < results.mean.size(); ++c) {
      const double spread = 1 / given.inv_std[c];
      ASSERT_NEAR(results.mean[c], given.mean[c], 2e-6 * (spread + std::abs(given.mean[c])));
      ASSERT_NEAR(results.inv_std[c], given.inv_std[c], 1e-5 * given.inv_std[c]);
      ASSERT_NEAR(results.running_mean[c], given.new_mean[c], 2e-6 * (1 + std::abs(given.mean[c])));
      ASSERT_NEAR(results.running_var[c], given.new_var[c], 1e-5 * (1 + given.new_var[c]));
      ASSERT_NEAR(results.d_bias[c], given.d_bias[c], 2e-6 * rows) << "channel " << c;
      ASSERT_NEAR(results.d_weight[c], given.d_weight[c], 4e-6 * rows) << "channel " << c;
    }
    for (std::size_t i = 0; i < results.dx.size(); ++i) {
      const std::size_t c = i % results.mean.size();
      const double scale = std::abs(given.weight[c]) * given.inv_std[c];
      // With two rows, the exact gradient is a small difference of large terms.
      ASSERT_NEAR(results.dx[i], given.dx[i], near(given.dx[i]) + 4e-5 * scale) << "dx " << i;
      if (given.options.residual) {
        ASSERT_NEAR(results.d_residual[i], given.d_residual[i], near(given.d_residual[i]));
      }
    }
  }

 private:
  static double near(double value) { return std::abs(value) * Type::kRounding * 1.01 + 1e-7; }
  static std::vector<float> floats_of(const std::vector<double>& values) {
    return {values.begin(), values.end()};
  }
};
TYPED_TEST_SUITE(BatchNormKernelTest, ValueTypes);

TYPED_TEST(BatchNormKernelTest, IsCloseToDoublePrecisionForAnyShape) {
  for (const Size& size : kSizes) {
    const Reference given = TestFixture::reference(size, {});
    SCOPED_TRACE(testing::Message() << size.rows << " x " << size.channels);
    this->run(given, [&](const auto& results) { TestFixture::expect_close(given, results); });
    if (testing::Test::HasFatalFailure()) return;
  }
}

TYPED_TEST(BatchNormKernelTest, AddsResidualsAndForks) {
  for (const bool relu : {true, false}) {
    for (const bool residual : {true, false}) {
      for (const bool fork : {true, false}) {
        for (const Size& size : {Size{50, 5}, Size{301, 24}}) {
          const Reference given = TestFixture::reference(size, {relu, residual, fork});
          SCOPED_TRACE(testing::Message()
                       << size.rows << " x " << size.channels << ", relu " << relu << ", residual "
                       << residual << ", fork " << fork);
          this->run(given, [&](const auto& results) { TestFixture::expect_close(given, results); });
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

/// Like torch's ReLU. Rounding makes such outputs common in 16 bits.
TYPED_TEST(BatchNormKernelTest, PassesNoGradientWhereTheOutputIsZero) {
  for (const bool residual : {true, false}) {
    Reference given = TestFixture::reference({50, 16}, {.residual = residual});
    for (auto* values : {&given.weight, &given.bias, &given.residual})
      std::fill(values->begin(), values->end(), 0);
    this->run(given, [&](const auto& results) {
      for (const auto* values : {&results.y, &results.dx, &results.d_residual})
        for (const double value : *values) ASSERT_EQ(value, 0);
      for (const auto* values : {&results.d_weight, &results.d_bias})
        for (const float value : *values) ASSERT_EQ(value, 0);
    });
  }
}

/// The bits are the same for every order of threads and blocks.
TYPED_TEST(BatchNormKernelTest, DoesNotDependOnTheOrderOfThreads) {
  const Reference given = TestFixture::reference({5000, 24}, {.residual = true, .fork = true});
  std::optional<typename TestFixture::Results> first;
  this->run(given, [&](const auto& results) {
    if (!first) first = results;
    EXPECT_EQ(results.y, first->y);
    EXPECT_EQ(results.dx, first->dx);
    EXPECT_EQ(results.d_residual, first->d_residual);
    EXPECT_EQ(results.mean, first->mean);
    EXPECT_EQ(results.inv_std, first->inv_std);
    EXPECT_EQ(results.running_var, first->running_var);
    EXPECT_EQ(results.d_weight, first->d_weight);
    EXPECT_EQ(results.d_bias, first->d_bias);
  });
}

/// A variance computed from sums of squares would lose all significant digits.
TEST(BatchNormKernelPrecisionTest, VariancesSurviveLargeMeans) {
  if (const std::string reason = test::missing_device(); !reason.empty()) GTEST_SKIP() << reason;
  struct Precision : BatchNormKernelTest<F32> {
    void TestBody() override {
      const Reference given = reference({3001, 4}, {}, 1000, 0.5);
      run(given, [&](const Results& results) {
        for (std::size_t c = 0; c < 4; ++c)
          EXPECT_NEAR(results.inv_std[c], given.inv_std[c], 1e-4 * given.inv_std[c]);
      });
    }
  };
  Precision().TestBody();
}

}  // namespace
}  // namespace precast::models
