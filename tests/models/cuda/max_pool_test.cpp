// Built twice: for the host (kernels_test) and for a GPU (kernels_gpu_test).
#include "models/cuda/max_pool.h"

#include <gtest/gtest.h>

#include <cmath>

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
/// One pixel, single rows and columns, odd and even sides, channels that do and do not fill packs
/// of 4 and 8, more packs than a block has threads.
constexpr Size kSizes[] = {{1, 1, 1, 1}, {1, 1, 5, 3}, {1, 6, 1, 8},   {3, 2, 2, 4},  {2, 7, 7, 5},
                           {1, 8, 9, 2}, {1, 9, 8, 9}, {2, 17, 5, 16}, {1, 4, 90, 64}};

struct Reference {
  Size size{};
  std::vector<double> x, y, dy, fork, dx;
  std::vector<std::uint8_t> argmax;

  [[nodiscard]] int rows() const { return (size.height + 1) / 2; }
  [[nodiscard]] int columns() const { return (size.width + 1) / 2; }
  [[nodiscard]] std::size_t count() const { return at(size.images, 0, 0, 0); }
  [[nodiscard]] std::size_t results() const { return result_at(size.images, 0, 0, 0); }
  [[nodiscard]] std::size_t at(int image, int row, int column, int channel) const {
    return static_cast<std::size_t>(
        ((image * size.height + row) * size.width + column) * size.channels + channel);
  }
  [[nodiscard]] std::size_t result_at(int image, int row, int column, int channel) const {
    return static_cast<std::size_t>(((image * rows() + row) * columns() + column) * size.channels +
                                    channel);
  }
  void compute(bool forks) {
    y.assign(results(), 0);
    argmax.assign(results(), 0);
    dx.assign(count(), 0);
    for (int n = 0; n < size.images; ++n)
      for (int row = 0; row < rows(); ++row)
        for (int column = 0; column < columns(); ++column)
          for (int c = 0; c < size.channels; ++c) compute_window(n, row, column, c, forks);
  }

 private:
  void compute_window(int n, int row, int column, int c, bool forks) {
    const std::size_t to = result_at(n, row, column, c);
    std::size_t best = count();
    for (int tap = 0; tap < 9; ++tap) {
      const int from_row = 2 * row + tap / 3 - 1, from_column = 2 * column + tap % 3 - 1;
      if (from_row < 0 || from_row >= size.height || from_column < 0 || from_column >= size.width)
        continue;
      const std::size_t from = at(n, from_row, from_column, c);
      if (best != count() && !(x[from] > x[best]) && !std::isnan(x[from])) continue;
      best = from;
      argmax[to] = static_cast<std::uint8_t>(tap);
    }
    y[to] = x[best];
    dx[best] += dy[to] + (forks ? fork[to] : 0);
  }
};

template <typename Type>
class MaxPoolKernelTest : public test::DeviceTest {
 protected:
  using Memory = GuardedArray<Type>;

  static Reference reference(const Size& size, bool forks = false) {
    Reference made;
    made.size = size;
    made.x = rounded<Type>(random_values(made.count(), 1, 0, 2));
    made.dy = rounded<Type>(random_values(made.results(), 2, 0.1, 1));
    made.fork = rounded<Type>(random_values(made.results(), 3, 0.1, 1));
    made.compute(forks);
    return made;
  }
  /// Values and positions of maxima are exact; gradients are rounded once to the type, and their
  /// sums to float32.
  static void expect_equal(const Reference& given, bool forks = false) {
    const MaxPoolShape shape{given.size.images, given.size.height, given.size.width,
                             given.size.channels, Type::kType};
    ASSERT_EQ(max_pool_values(shape), given.results());
    const Memory x(given.x), dy(given.dy), fork(given.fork);
    test::in_several_orders([&] {
      const Memory y(given.results()), dx(given.count());
      const test::DeviceArray<std::uint8_t> argmax(given.results());
      max_pool_forward(shape, {.x = x.data(), .y = y.data(), .argmax = argmax.data()}, nullptr);
      max_pool_backward(shape,
                        {.dy = dy.data(),
                         .dy_fork = forks ? fork.data() : nullptr,
                         .argmax = argmax.data(),
                         .dx = dx.data()},
                        nullptr);
      ASSERT_EQ(argmax.values(), given.argmax);
      const std::vector<double> values = y.values(), gradients = dx.values();
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_TRUE(values[i] == given.y[i] || (std::isnan(values[i]) && std::isnan(given.y[i])))
            << i;
      }
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        ASSERT_NEAR(gradients[i], given.dx[i],
                    std::abs(given.dx[i]) * Type::kRounding * 1.01 + 0x1p-24 * 20)
            << i;
      }
    });
  }
};
TYPED_TEST_SUITE(MaxPoolKernelTest, ValueTypes);

TYPED_TEST(MaxPoolKernelTest, IsTheDefinitionForAnyShape) {
  for (const bool forks : {false, true}) {
    for (const Size& size : kSizes) {
      SCOPED_TRACE(testing::Message() << size.images << " x " << size.height << " x " << size.width
                                      << " x " << size.channels << (forks ? ", fork" : ""));
      TestFixture::expect_equal(TestFixture::reference(size, forks), forks);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

/// After a ReLU, many windows contain only zeros.
TYPED_TEST(MaxPoolKernelTest, TheFirstOfEqualValuesGetsTheGradient) {
  Reference given = TestFixture::reference({2, 9, 12, 8});
  for (std::size_t i = 0; i < given.x.size(); ++i) given.x[i] = static_cast<double>(i % 7 / 5);
  given.compute(false);
  TestFixture::expect_equal(given);
}

TYPED_TEST(MaxPoolKernelTest, NanAndInfinityAreMaximaAsInTorch) {
  Reference given = TestFixture::reference({1, 6, 6, 8});
  for (int c = 0; c < 8; ++c) {
    given.x[given.at(0, 1, 1, c)] = NAN;
    given.x[given.at(0, 1, 2, c)] = NAN;
    given.x[given.at(0, 3, 3, c)] = INFINITY;
    given.x[given.at(0, 5, 5, c)] = -INFINITY;
  }
  given.x[given.at(0, 4, 4, 0)] = given.x[given.at(0, 4, 5, 0)] = -INFINITY;
  given.compute(false);
  TestFixture::expect_equal(given);
}

}  // namespace
}  // namespace precast::models
