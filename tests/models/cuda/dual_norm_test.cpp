// Built twice: for the host (kernels_test) and for a GPU (kernels_gpu_test).
#include "models/cuda/dual_norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "tests/support/float_types.h"

namespace precast::models {
namespace {

using test::GuardedArray;
using test::random_values;
using test::rounded;
using test::ValueTypes;

struct Size {
  int rows;
  int channels;
};
/// Odd sizes, channels that do and do not fill a pack of 8 or a block, one and several chunks.
constexpr Size kSizes[] = {{2, 1},  {2, 8},   {3, 3},    {7, 16},    {49, 264},
                           {50, 5}, {255, 9}, {1000, 8}, {4099, 24}, {20'011, 2}};

constexpr double kEps = 1e-5F, kMomentum = 0.1F;

/// One of the two norms: its inputs, and its results in double precision.
struct Side {
  std::vector<double> x, weight, bias, running_mean, running_var;
  std::vector<double> mean, inv_std, normalized, dx, d_weight, d_bias, new_mean, new_var;

  [[nodiscard]] std::size_t channels() const { return weight.size(); }
  [[nodiscard]] double rows() const {
    return static_cast<double>(x.size()) / static_cast<double>(channels());
  }

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

struct Reference {
  bool forks = false;
  /// Rounds to the type of the activations.
  double (*round)(double) = nullptr;
  Side norm, shortcut;
  std::vector<double> dy, fork, y, sum;

  /// @param passes whether the ReLU passes a value; by default, whether it is positive
  void compute(const std::vector<bool>* passes = nullptr) {
    norm.normalize();
    shortcut.normalize();
    y.assign(dy.size(), 0);
    sum.assign(dy.size(), 0);
    for (std::size_t i = 0; i < dy.size(); ++i) {
      const double value = norm.y(i) + shortcut.y(i);
      if (passes != nullptr ? !(*passes)[i] : value <= 0) continue;
      y[i] = value;
      // The kernels compute the other gradients from the gradient of the sum that they have
      // written.
      sum[i] = round(dy[i] + (forks ? fork[i] : 0));
    }
    norm.differentiate(sum);
    shortcut.differentiate(sum);
  }
};

template <typename Type>
class DualNormKernelTest : public ::testing::Test {
 protected:
  using Memory = GuardedArray<Type>;
  using Floats = test::DeviceArray<float>;

  void SetUp() override {
    if (const std::string reason = test::missing_device(); !reason.empty()) GTEST_SKIP() << reason;
  }

  static Reference reference(const Size& size, bool forks) {
    const auto channels = static_cast<std::size_t>(size.channels);
    const std::size_t count = static_cast<std::size_t>(size.rows) * channels;
    Reference made;
    made.forks = forks;
    made.round = [](double value) { return Type::to(Type::of(value)); };
    made.dy = rounded<Type>(random_values(count, 1, 0.1, 1));
    made.fork = rounded<Type>(random_values(count, 2, 0, 1));
    std::uint32_t stream = 3;
    for (Side* side : {&made.norm, &made.shortcut}) {
      side->x = rounded<Type>(random_values(count, stream++, 0.5, 2));
      side->weight = as_float(random_values(channels, stream++, 1, 0.3));
      side->bias = as_float(random_values(channels, stream++, 0, 0.3));
      side->running_mean = as_float(random_values(channels, stream++, 0, 1));
      side->running_var = as_float(random_values(channels, stream++, 1, 0.1));
    }
    made.compute();
    return made;
  }

  /// The memory of one norm on the device.
  struct DeviceSide {
    Memory x, dx;
    Floats weight, bias, running_mean, running_var, mean, inv_std, d_weight, d_bias;
    std::shared_ptr<void> workspace;

    DeviceSide(const Side& side, const BatchNormShape& shape)
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
          workspace(test::device_memory(batch_norm_workspace_bytes(shape))) {}
    [[nodiscard]] BatchNormForward forward() const {
      return {.x = x.data(),
              .weight = weight.data(),
              .bias = bias.data(),
              .running_mean = running_mean.data(),
              .running_var = running_var.data(),
              .mean = mean.data(),
              .inv_std = inv_std.data(),
              .workspace = workspace.get()};
    }
    [[nodiscard]] BatchNormBackward backward() const {
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
  struct SideResults {
    std::vector<double> dx;
    std::vector<float> mean, inv_std, running_mean, running_var, d_weight, d_bias;

    explicit SideResults(const DeviceSide& side)
        : dx(side.dx.values()),
          mean(side.mean.values()),
          inv_std(side.inv_std.values()),
          running_mean(side.running_mean.values()),
          running_var(side.running_var.values()),
          d_weight(side.d_weight.values()),
          d_bias(side.d_bias.values()) {}
    bool operator==(const SideResults&) const = default;
  };
  struct Results {
    std::vector<double> y, sum;
    SideResults norm, shortcut;
    bool operator==(const Results&) const = default;
  };

  /// Calls check(results) for each order of threads.
  template <typename Check>
  void run(const Reference& given, Check check) {
    const std::size_t count = given.dy.size(), channels = given.norm.channels();
    const BatchNormShape shape{static_cast<std::int64_t>(count / channels),
                               static_cast<int>(channels), Type::kType};
    const Memory dy(given.dy), fork(given.fork);
    test::in_several_orders([&] {
      const Memory y(count), sum(count);
      const test::DeviceArray<std::uint8_t> mask(batch_norm_mask_bytes(shape));
      const DeviceSide norm(given.norm, shape), shortcut(given.shortcut, shape);
      DualNormForward forward{norm.forward(), shortcut.forward()};
      forward.norm.y = y.data();
      forward.norm.mask = mask.data();
      forward.shortcut.workspace = norm.workspace.get();
      dual_norm_forward(shape, forward, nullptr);
      DualNormBackward backward{norm.backward(), shortcut.backward()};
      backward.norm.dy = dy.data();
      backward.norm.dy_fork = given.forks ? fork.data() : nullptr;
      backward.norm.mask = mask.data();
      backward.norm.d_residual = sum.data();
      dual_norm_backward(shape, backward, nullptr);
      check(Results{y.values(), sum.values(), SideResults(norm), SideResults(shortcut)});
    });
  }

  /// Compares with double precision. The ReLU may decide differently only if a value is almost 0,
  /// so the reference uses the kernels' decisions.
  static void expect_close(Reference given, const Results& results) {
    std::vector<bool> passes;
    for (std::size_t i = 0; i < results.y.size(); ++i) {
      passes.push_back(results.y[i] > 0);
      ASSERT_NEAR(results.y[i], given.y[i], near(given.y[i]) + 1e-5) << "y " << i;
    }
    given.compute(&passes);
    for (std::size_t i = 0; i < results.sum.size(); ++i)
      ASSERT_NEAR(results.sum[i], given.sum[i], near(given.sum[i])) << "gradient of the sum " << i;
    expect_close(given.norm, results.norm);
    expect_close(given.shortcut, results.shortcut);
  }

 private:
  static void expect_close(const Side& given, const SideResults& results) {
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
      ASSERT_NEAR(results.dx[i], given.dx[i], near(given.dx[i]) + 4e-5 * scale) << "dx " << i;
    }
  }
  static double near(double value) { return std::abs(value) * Type::kRounding * 1.01 + 1e-7; }
  static std::vector<float> floats_of(const std::vector<double>& values) {
    return {values.begin(), values.end()};
  }
  static std::vector<double> as_float(std::vector<double> values) {
    for (double& value : values) value = double{static_cast<float>(value)};
    return values;
  }
};
TYPED_TEST_SUITE(DualNormKernelTest, ValueTypes);

TYPED_TEST(DualNormKernelTest, IsCloseToDoublePrecisionForAnyShape) {
  for (const bool forks : {false, true}) {
    for (const Size& size : kSizes) {
      SCOPED_TRACE(testing::Message()
                   << size.rows << " x " << size.channels << (forks ? ", fork" : ""));
      const Reference given = TestFixture::reference(size, forks);
      this->run(given, [&](const auto& results) { TestFixture::expect_close(given, results); });
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

/// Like torch's ReLU. Rounding makes such outputs common in 16 bits.
TYPED_TEST(DualNormKernelTest, PassesNoGradientWhereTheOutputIsZero) {
  Reference given = TestFixture::reference({50, 16}, true);
  for (Side* side : {&given.norm, &given.shortcut})
    for (auto* values : {&side->weight, &side->bias}) std::fill(values->begin(), values->end(), 0);
  this->run(given, [&](const auto& results) {
    for (const auto* values : {&results.y, &results.sum, &results.norm.dx, &results.shortcut.dx})
      for (const double value : *values) ASSERT_EQ(value, 0);
  });
}

/// A loss that is NaN ends the training, so NaN must not become 0.
TYPED_TEST(DualNormKernelTest, NanOfEitherNormReachesItsChannel) {
  for (const bool of_shortcut : {false, true}) {
    Reference given = TestFixture::reference({9, 8}, false);
    (of_shortcut ? given.shortcut : given.norm).x[8 + 3] = NAN;
    this->run(given, [&](const auto& results) {
      for (std::size_t i = 0; i < results.y.size(); ++i)
        ASSERT_EQ(std::isnan(results.y[i]), i % 8 == 3) << i;
    });
  }
}

/// The bits are the same for every order of threads and blocks.
TYPED_TEST(DualNormKernelTest, DoesNotDependOnTheOrderOfThreads) {
  const Reference given = TestFixture::reference({5000, 24}, true);
  std::optional<typename TestFixture::Results> first;
  this->run(given, [&](const auto& results) {
    if (!first) first = results;
    EXPECT_TRUE(results == *first);
  });
}

}  // namespace
}  // namespace precast::models
