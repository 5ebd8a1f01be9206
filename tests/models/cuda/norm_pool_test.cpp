// Built twice: for the host (kernels_test) and for a GPU (kernels_gpu_test).
#include "models/cuda/norm_pool.h"

#include <gtest/gtest.h>

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
  int images, height, width, channels;
};
/// Single rows and columns, odd and even sides, channels that do and do not fill packs of 4 and 8,
/// one and several strips of rows, more packs than a block has threads.
constexpr Size kSizes[] = {{2, 1, 1, 1},   {1, 1, 5, 3},   {1, 6, 1, 8},
                           {3, 2, 2, 4},   {2, 7, 7, 5},   {1, 8, 9, 2},
                           {1, 35, 16, 9}, {2, 17, 5, 16}, {1, 4, 90, 64}};

/// The inputs, rounded to the types that the kernels read, and the results in double precision.
struct Reference {
  Size size{};
  bool forks = false;
  double eps = 1e-5F, momentum = 0.1F;
  std::vector<double> x, dy, fork, weight, bias, running_mean, running_var;
  std::vector<double> mean, inv_std, y, dx, largest, d_weight, d_bias, new_mean, new_var;
  std::vector<std::uint8_t> argmax;

  [[nodiscard]] int rows() const { return (size.height + 1) / 2; }
  [[nodiscard]] int columns() const { return (size.width + 1) / 2; }
  [[nodiscard]] std::size_t pixels() const {
    return static_cast<std::size_t>(size.images) * static_cast<std::size_t>(size.height) *
           static_cast<std::size_t>(size.width);
  }
  [[nodiscard]] std::size_t channels() const { return static_cast<std::size_t>(size.channels); }
  [[nodiscard]] std::size_t count() const { return pixels() * channels(); }
  [[nodiscard]] std::size_t results() const {
    return static_cast<std::size_t>(size.images * rows() * columns()) * channels();
  }
  [[nodiscard]] std::size_t at(int image, int row, int column, std::size_t channel) const {
    const int pixel = (image * size.height + row) * size.width + column;
    return static_cast<std::size_t>(pixel) * channels() + channel;
  }

  /// @param passes for each result, whether the ReLU passes it; by default, whether it is positive
  void compute(const std::vector<bool>* passes = nullptr) {
    for (auto* values : {&y, &largest}) values->assign(results(), 0);
    argmax.assign(results(), 0);
    dx.assign(count(), 0);
    for (auto* values : {&mean, &inv_std, &d_weight, &d_bias, &new_mean, &new_var})
      values->assign(channels(), 0);
    for (std::size_t c = 0; c < channels(); ++c) compute_channel(c, passes);
  }

 private:
  void compute_channel(std::size_t c, const std::vector<bool>* passes) {
    const auto pixel_count = static_cast<double>(pixels());
    double sum = 0, squares = 0;
    for (std::size_t i = c; i < count(); i += channels()) sum += x[i];
    mean[c] = sum / pixel_count;
    for (std::size_t i = c; i < count(); i += channels())
      squares += (x[i] - mean[c]) * (x[i] - mean[c]);
    inv_std[c] = 1 / std::sqrt(squares / pixel_count + eps);
    new_mean[c] = running_mean[c] + momentum * (mean[c] - running_mean[c]);
    new_var[c] = running_var[c] + momentum * (squares / (pixel_count - 1) - running_var[c]);
    std::size_t result = c;
    for (int image = 0; image < size.images; ++image)
      for (int row = 0; row < rows(); ++row)
        for (int column = 0; column < columns(); ++column, result += channels())
          compute_window(image, row, column, c, result, passes);
    for (std::size_t i = c; i < count(); i += channels()) {
      dx[i] = weight[c] * inv_std[c] *
              (dx[i] - d_bias[c] / pixel_count -
               (x[i] - mean[c]) * inv_std[c] * d_weight[c] / pixel_count);
    }
  }
  void compute_window(int image, int row, int column, std::size_t c, std::size_t result,
                      const std::vector<bool>* passes) {
    std::optional<std::size_t> best;
    for (int place = 0; place < 9; ++place) {
      const int from_row = 2 * row + place / 3 - 1, from_column = 2 * column + place % 3 - 1;
      if (from_row < 0 || from_row >= size.height || from_column < 0 || from_column >= size.width)
        continue;
      const std::size_t from = at(image, from_row, from_column, c);
      if (best && !(weight[c] < 0 ? x[from] < x[*best] : x[from] > x[*best])) continue;
      best = from;
      argmax[result] = static_cast<std::uint8_t>(place);
    }
    largest[result] = x[*best];
    const double normalized = (x[*best] - mean[c]) * inv_std[c];
    const double value = normalized * weight[c] + bias[c];
    if (passes != nullptr ? !(*passes)[result] : value <= 0) return;
    y[result] = value;
    const double gradient = dy[result] + (forks ? fork[result] : 0);
    dx[*best] += gradient;
    d_bias[c] += gradient;
    d_weight[c] += gradient * normalized;
  }
};

template <typename Type>
class NormPoolKernelTest : public ::testing::Test {
 protected:
  using Memory = GuardedArray<Type>;
  using Floats = test::DeviceArray<float>;

  void SetUp() override {
    if (const std::string reason = test::missing_device(); !reason.empty()) GTEST_SKIP() << reason;
  }

  static Reference reference(const Size& size, bool forks = false) {
    Reference made;
    made.size = size;
    made.forks = forks;
    made.x = rounded<Type>(random_values(made.count(), 1, 0.5, 2));
    made.dy = rounded<Type>(random_values(made.results(), 2, 0.1, 1));
    made.fork = rounded<Type>(random_values(made.results(), 3, 0, 1));
    made.weight = as_float(random_values(made.channels(), 4, 1, 0.3));
    for (std::size_t c = 1; c < made.channels(); c += 3) made.weight[c] *= -1;
    made.bias = as_float(random_values(made.channels(), 5, 0, 0.3));
    made.running_mean = as_float(random_values(made.channels(), 6, 0, 1));
    made.running_var = as_float(random_values(made.channels(), 7, 1, 0.1));
    made.compute();
    return made;
  }

  struct Results {
    std::vector<double> y, largest, dx;
    std::vector<std::uint8_t> argmax;
    std::vector<float> mean, inv_std, running_mean, running_var, d_weight, d_bias;
  };

  /// Calls check(results) for each order of threads.
  template <typename Check>
  void run(const Reference& given, Check check) {
    const MaxPoolShape shape{given.size.images, given.size.height, given.size.width,
                             given.size.channels, Type::kType};
    const std::size_t channels = given.channels();
    const Memory x(given.x), dy(given.dy), fork(given.fork);
    const Floats weight(floats_of(given.weight)), bias(floats_of(given.bias));
    test::in_several_orders([&] {
      const Memory y(given.results()), largest(given.results()), dx(given.count());
      const test::DeviceArray<std::uint8_t> argmax(given.results());
      const Floats mean(channels), inv_std(channels), d_weight(channels), d_bias(channels);
      const Floats running_mean(floats_of(given.running_mean)),
          running_var(floats_of(given.running_var));
      const auto forward_space = test::device_memory(batch_norm_workspace_bytes(norm_shape(shape)));
      const auto backward_space =
          test::device_memory(batch_norm_workspace_bytes(pooled_norm_shape(shape)));
      norm_pool_forward(shape,
                        {.norm = {.x = x.data(),
                                  .weight = weight.data(),
                                  .bias = bias.data(),
                                  .running_mean = running_mean.data(),
                                  .running_var = running_var.data(),
                                  .y = y.data(),
                                  .mean = mean.data(),
                                  .inv_std = inv_std.data(),
                                  .workspace = forward_space.get()},
                         .largest = largest.data(),
                         .argmax = argmax.data()},
                        nullptr);
      norm_pool_backward(shape,
                         {.norm = {.x = x.data(),
                                   .dy = dy.data(),
                                   .dy_fork = given.forks ? fork.data() : nullptr,
                                   .weight = weight.data(),
                                   .bias = bias.data(),
                                   .mean = mean.data(),
                                   .inv_std = inv_std.data(),
                                   .dx = dx.data(),
                                   .d_weight = d_weight.data(),
                                   .d_bias = d_bias.data(),
                                   .workspace = backward_space.get()},
                          .largest = largest.data(),
                          .argmax = argmax.data()},
                         nullptr);
      check(Results{y.values(), largest.values(), dx.values(), argmax.values(), mean.values(),
                    inv_std.values(), running_mean.values(), running_var.values(),
                    d_weight.values(), d_bias.values()});
    });
  }

  /// Compares with double precision. A ReLU may decide differently only if a value is almost 0, so
  /// the reference uses the kernels' decisions.
  static void expect_close(Reference given, const Results& results) {
    ASSERT_EQ(results.argmax, given.argmax);
    ASSERT_EQ(results.largest, given.largest);
    std::vector<bool> passes;
    for (std::size_t i = 0; i < results.y.size(); ++i) {
      passes.push_back(results.y[i] > 0);
      ASSERT_NEAR(results.y[i], given.y[i], near(given.y[i]) + 1e-5) << "y " << i;
    }
    given.compute(&passes);
    const auto pixels = static_cast<double>(given.pixels());
    for (std::size_t c = 0; c < results.mean.size(); ++c) {
      const double spread = 1 / given.inv_std[c];
      ASSERT_NEAR(results.mean[c], given.mean[c], 2e-6 * (spread + std::abs(given.mean[c])));
      ASSERT_NEAR(results.inv_std[c], given.inv_std[c], 1e-5 * given.inv_std[c]);
      ASSERT_NEAR(results.running_mean[c], given.new_mean[c], 2e-6 * (1 + std::abs(given.mean[c])));
      ASSERT_NEAR(results.running_var[c], given.new_var[c], 1e-5 * (1 + given.new_var[c]));
      ASSERT_NEAR(results.d_bias[c], given.d_bias[c], 2e-6 * pixels) << "channel " << c;
      ASSERT_NEAR(results.d_weight[c], given.d_weight[c], 4e-6 * pixels) << "channel " << c;
    }
    for (std::size_t i = 0; i < results.dx.size(); ++i) {
      const std::size_t c = i % results.mean.size();
      const double scale = std::abs(given.weight[c]) * given.inv_std[c];
      ASSERT_NEAR(results.dx[i], given.dx[i], near(given.dx[i]) + 4e-5 * scale) << "dx " << i;
    }
  }

 private:
  static double near(double value) { return std::abs(value) * Type::kRounding * 1.01 + 1e-7; }
  static std::vector<float> floats_of(const std::vector<double>& values) {
    return {values.begin(), values.end()};
  }
  static std::vector<double> as_float(std::vector<double> values) {
    for (double& value : values) value = double{static_cast<float>(value)};
    return values;
  }
};
TYPED_TEST_SUITE(NormPoolKernelTest, ValueTypes);

TYPED_TEST(NormPoolKernelTest, IsCloseToDoublePrecisionForAnyShape) {
  for (const bool forks : {false, true}) {
    for (const Size& size : kSizes) {
      SCOPED_TRACE(testing::Message() << size.images << " x " << size.height << " x " << size.width
                                      << " x " << size.channels << (forks ? ", fork" : ""));
      const Reference given = TestFixture::reference(size, forks);
      this->run(given, [&](const auto& results) { TestFixture::expect_close(given, results); });
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

/// Few different values, so that most windows have several maxima.
TYPED_TEST(NormPoolKernelTest, TheFirstOfEqualValuesGetsTheGradient) {
  Reference given = TestFixture::reference({2, 9, 12, 8});
  constexpr double kValues[] = {0, 0, 0, 1, 1, 1, 2};
  for (std::size_t i = 0; i < given.x.size(); ++i) given.x[i] = kValues[i % 7];
  given.compute();
  this->run(given, [&](const auto& results) { TestFixture::expect_close(given, results); });
}

/// All values of such a channel are equal, so the gradient of the weight depends on which x is
/// chosen.
TYPED_TEST(NormPoolKernelTest, WithAWeightOf0TheLargestXGetsTheGradient) {
  Reference given = TestFixture::reference({2, 9, 12, 8});
  given.weight[3] = 0;
  given.bias[3] = 0.5;
  given.compute();
  this->run(given, [&](const auto& results) { TestFixture::expect_close(given, results); });
}

TYPED_TEST(NormPoolKernelTest, PassesNoGradientWhereTheOutputIsZero) {
  Reference given = TestFixture::reference({1, 7, 8, 16});
  for (double& bias : given.bias) bias = -100;
  given.compute();
  this->run(given, [&](const auto& results) {
    for (const auto* values : {&results.y, &results.dx})
      for (const double value : *values) ASSERT_EQ(value, 0);
    for (const auto* values : {&results.d_weight, &results.d_bias})
      for (const float value : *values) ASSERT_EQ(value, 0);
  });
}

/// A loss that is NaN ends the training, so NaN must not become 0.
TYPED_TEST(NormPoolKernelTest, NanReachesEveryResultOfItsChannel) {
  Reference given = TestFixture::reference({1, 6, 6, 8});
  given.x[given.at(0, 3, 3, 2)] = NAN;
  this->run(given, [&](const auto& results) {
    for (std::size_t i = 0; i < results.y.size(); ++i)
      ASSERT_EQ(std::isnan(results.y[i]), i % 8 == 2) << i;
  });
}

/// The bits are the same for every order of threads and blocks.
TYPED_TEST(NormPoolKernelTest, DoesNotDependOnTheOrderOfThreads) {
  const Reference given = TestFixture::reference({3, 20, 21, 24}, true);
  std::optional<typename TestFixture::Results> first;
  this->run(given, [&](const auto& results) {
    if (!first) first = results;
    EXPECT_EQ(results.y, first->y);
    EXPECT_EQ(results.argmax, first->argmax);
    EXPECT_EQ(results.dx, first->dx);
    EXPECT_EQ(results.running_var, first->running_var);
    EXPECT_EQ(results.d_weight, first->d_weight);
    EXPECT_EQ(results.d_bias, first->d_bias);
  });
}

}  // namespace
}  // namespace precast::models
