// Built twice: for the host (kernels_test) and for a GPU (kernels_gpu_test).
#include "models/cuda/norm_pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "tests/models/cuda/norm_side.h"

namespace precast::models {
namespace {

using test::DeviceNorm;
using test::expect_near;
using test::GuardedArray;
using test::NormResults;
using test::random_values;
using test::ReferenceNorm;
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

struct Reference {
  Size size{};
  bool forks = false;
  ReferenceNorm norm;
  std::vector<double> dy, fork, y, largest;
  std::vector<std::uint8_t> argmax;

  [[nodiscard]] int rows() const { return (size.height + 1) / 2; }
  [[nodiscard]] int columns() const { return (size.width + 1) / 2; }
  [[nodiscard]] std::size_t channels() const { return static_cast<std::size_t>(size.channels); }
  [[nodiscard]] std::size_t count() const { return at(size.images, 0, 0, 0); }
  [[nodiscard]] std::size_t results() const {
    return static_cast<std::size_t>(size.images * rows() * columns()) * channels();
  }
  [[nodiscard]] std::size_t at(int image, int row, int column, std::size_t channel) const {
    const int pixel = (image * size.height + row) * size.width + column;
    return static_cast<std::size_t>(pixel) * channels() + channel;
  }

  /// @param decisions values that are positive where the ReLU passes its input; by default, the
  /// inputs of the reference's ReLU
  void compute(const std::vector<double>* decisions = nullptr) {
    norm.normalize();
    for (auto* values : {&y, &largest}) values->assign(results(), 0);
    argmax.assign(results(), 0);
    std::vector<double> gradient(count(), 0.0);
    std::size_t i = 0;
    for (int image = 0; image < size.images; ++image)
      for (int row = 0; row < rows(); ++row)
        for (int column = 0; column < columns(); ++column)
          for (std::size_t c = 0; c < channels(); ++c, ++i) {
            const std::size_t best = compute_maximum(image, row, column, c, i);
            const double value = norm.y(best);
            if (!((decisions != nullptr ? (*decisions)[i] : value) > 0)) continue;
            y[i] = value;
            gradient[best] += dy[i] + (forks ? fork[i] : 0);
          }
    norm.differentiate(gradient);
  }

 private:
  /// The index of the maximum in x.
  std::size_t compute_maximum(int image, int row, int column, std::size_t c, std::size_t result) {
    const double sign = norm.weight[c] < 0 ? -1 : 1;
    std::optional<std::size_t> best;
    for (int tap = 0; tap < 9; ++tap) {
      const int from_row = 2 * row + tap / 3 - 1, from_column = 2 * column + tap % 3 - 1;
      if (from_row < 0 || from_row >= size.height || from_column < 0 || from_column >= size.width)
        continue;
      const std::size_t from = at(image, from_row, from_column, c);
      if (best && !(sign * norm.x[from] > sign * norm.x[*best])) continue;
      best = from;
      argmax[result] = static_cast<std::uint8_t>(tap);
    }
    largest[result] = norm.x[*best];
    return *best;
  }
};

template <typename Type>
class NormPoolKernelTest : public test::DeviceTest {
 protected:
  using Memory = GuardedArray<Type>;

  static Reference reference(const Size& size, bool forks = false) {
    Reference made;
    made.size = size;
    made.forks = forks;
    made.norm =
        ReferenceNorm(rounded<Type>(random_values(made.count(), 1, 0.5, 2)), made.channels(), 4);
    for (std::size_t c = 1; c < made.channels(); c += 3) made.norm.weight[c] *= -1;
    made.dy = rounded<Type>(random_values(made.results(), 2, 0.1, 1));
    made.fork = rounded<Type>(random_values(made.results(), 3, 0, 1));
    made.compute();
    return made;
  }

  struct Results {
    std::vector<double> y, largest;
    std::vector<std::uint8_t> argmax;
    NormResults norm;
    bool operator==(const Results&) const = default;
  };

  /// Calls check(results) for each order of threads.
  template <typename Check>
  void run(const Reference& given, Check check) {
    const MaxPoolShape shape{given.size.images, given.size.height, given.size.width,
                             given.size.channels, Type::kType};
    const Memory dy(given.dy), fork(given.fork);
    test::in_several_orders([&] {
      const Memory y(given.results()), largest(given.results());
      const test::DeviceArray<std::uint8_t> argmax(given.results());
      const DeviceNorm<Type> norm(given.norm, norm_shape(shape));
      NormPoolForward forward{norm.forward(), largest.data(), argmax.data()};
      forward.norm.y = y.data();
      norm_pool_forward(shape, forward, nullptr);
      const auto workspace =
          test::device_memory(batch_norm_workspace_bytes(pooled_norm_shape(shape)));
      NormPoolBackward backward{norm.backward(), largest.data(), argmax.data()};
      backward.norm.dy = dy.data();
      backward.norm.dy_fork = given.forks ? fork.data() : nullptr;
      backward.norm.workspace = workspace.get();
      norm_pool_backward(shape, backward, nullptr);
      check(Results{y.values(), largest.values(), argmax.values(), NormResults(norm)});
    });
  }

  /// Compares with double precision. A ReLU may decide differently only if a value is almost 0, so
  /// the reference uses the kernels' decisions.
  static void expect_close(Reference given, const Results& results) {
    ASSERT_EQ(results.argmax, given.argmax);
    ASSERT_EQ(results.largest, given.largest);
    expect_near<Type>("y", results.y, given.y, 1e-5);
    given.compute(&results.y);
    test::expect_close<Type>(given.norm, results.norm);
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
  for (std::size_t i = 0; i < given.norm.x.size(); ++i) given.norm.x[i] = kValues[i % 7];
  given.compute();
  this->run(given, [&](const auto& results) { TestFixture::expect_close(given, results); });
}

/// All values of such a channel are equal, so the gradient of the weight depends on which x is
/// chosen.
TYPED_TEST(NormPoolKernelTest, WithAWeightOf0TheLargestXGetsTheGradient) {
  Reference given = TestFixture::reference({2, 9, 12, 8});
  given.norm.weight[3] = 0;
  given.norm.bias[3] = 0.5;
  given.compute();
  this->run(given, [&](const auto& results) { TestFixture::expect_close(given, results); });
}

TYPED_TEST(NormPoolKernelTest, PassesNoGradientWhereTheOutputIsZero) {
  Reference given = TestFixture::reference({1, 7, 8, 16});
  for (double& bias : given.norm.bias) bias = -100;
  given.compute();
  this->run(given, [&](const auto& results) {
    for (const auto* values : {&results.y, &results.norm.dx})
      for (const double value : *values) ASSERT_EQ(value, 0);
    for (const auto* values : {&results.norm.d_weight, &results.norm.d_bias})
      for (const float value : *values) ASSERT_EQ(value, 0);
  });
}

/// A loss that is NaN ends the training, so NaN must not become 0.
TYPED_TEST(NormPoolKernelTest, NanReachesEveryResultOfItsChannel) {
  Reference given = TestFixture::reference({1, 6, 6, 8});
  given.norm.x[given.at(0, 3, 3, 2)] = NAN;
  this->run(given, [&](const auto& results) {
    for (std::size_t i = 0; i < results.y.size(); ++i)
      ASSERT_EQ(std::isnan(results.y[i]), i % 8 == 2) << i;
  });
}

TYPED_TEST(NormPoolKernelTest, DoesNotDependOnTheOrderOfThreads) {
  const Reference given = TestFixture::reference({3, 20, 21, 24}, true);
  std::optional<typename TestFixture::Results> first;
  this->run(given, [&](const auto& results) {
    if (!first) first = results;
    EXPECT_TRUE(results == *first);
  });
}

}  // namespace
}  // namespace precast::models
