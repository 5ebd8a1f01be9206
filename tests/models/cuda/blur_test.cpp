// Built twice: for the host (kernels_test) and for a GPU (kernels_gpu_test).
#include "models/cuda/blur.h"

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
  int images, height, width, channels;
};
/// One pixel, single rows and columns, odd and even sides, several strips of rows, channels that do
/// and do not fill packs of 4 and 8, more packs than a block has threads.
constexpr Size kSizes[] = {{1, 1, 1, 1}, {1, 1, 5, 3}, {1, 6, 1, 8},   {3, 2, 2, 4},   {2, 7, 7, 5},
                           {1, 8, 9, 2}, {1, 9, 8, 9}, {2, 17, 5, 16}, {1, 16, 41, 64}};

/// The filter in double precision, computed as its definition says.
struct Reference {
  Size size{};
  std::vector<double> x, y, y_even, dy, dy_even, dx;

  [[nodiscard]] int even_height() const { return (size.height + 1) / 2; }
  [[nodiscard]] int even_width() const { return (size.width + 1) / 2; }
  [[nodiscard]] std::size_t count() const { return at(size.images, 0, 0, 0); }
  [[nodiscard]] std::size_t even_count() const { return even_at(size.images, 0, 0, 0); }
  [[nodiscard]] std::size_t at(int image, int row, int column, int channel) const {
    return static_cast<std::size_t>(
        ((image * size.height + row) * size.width + column) * size.channels + channel);
  }
  [[nodiscard]] std::size_t even_at(int image, int row, int column, int channel) const {
    return static_cast<std::size_t>(
        ((image * even_height() + row) * even_width() + column) * size.channels + channel);
  }
  /// Calls tap(pixel, the pixel's index in y_even or nullopt, neighbour, weight) for each pixel and
  /// each neighbour inside the image.
  template <typename Tap>
  void for_each_tap(Tap tap) const {
    constexpr double kTaps[] = {0.25, 0.5, 0.25};
    for (int n = 0; n < size.images; ++n)
      for (int row = 0; row < size.height; ++row)
        for (int column = 0; column < size.width; ++column)
          for (int c = 0; c < size.channels; ++c)
            for (int k = 0; k < 9; ++k) {
              const int beside = column + k % 3 - 1, above = row + k / 3 - 1;
              if (above < 0 || above >= size.height || beside < 0 || beside >= size.width) continue;
              std::optional<std::size_t> even;
              if (row % 2 == 0 && column % 2 == 0) even = even_at(n, row / 2, column / 2, c);
              tap(at(n, row, column, c), even, at(n, above, beside, c),
                  kTaps[k / 3] * kTaps[k % 3]);
            }
  }
  void compute(bool all, bool even) {
    y.assign(count(), 0);
    y_even.assign(even_count(), 0);
    dx.assign(count(), 0);
    for_each_tap([&](std::size_t pixel, std::optional<std::size_t> even_index, std::size_t from,
                     double weight) {
      y[pixel] += weight * x[from];
      if (all) dx[from] += weight * dy[pixel];
      if (!even_index) return;
      y_even[*even_index] += weight * x[from];
      if (even) dx[from] += weight * dy_even[*even_index];
    });
  }
};

template <typename Type>
class BlurKernelTest : public test::DeviceTest {
 protected:
  using Memory = GuardedArray<Type>;

  static Reference reference(const Size& size, bool all, bool even) {
    Reference made;
    made.size = size;
    made.x = rounded<Type>(random_values(made.count(), 1, 0.5, 2));
    made.dy = rounded<Type>(random_values(made.count(), 2, 0.1, 1));
    made.dy_even = rounded<Type>(random_values(made.even_count(), 3, 0.1, 1));
    made.compute(all, even);
    return made;
  }
  struct Results {
    std::vector<double> y, y_even, dx;
  };
  /// Calls check(results) for each order of threads.
  template <typename Check>
  static void run(const Reference& given, bool all, bool even, Check check) {
    const BlurShape shape{given.size.images, given.size.height, given.size.width,
                          given.size.channels, Type::kType};
    const Memory x(given.x), dy(given.dy), dy_even(given.dy_even);
    test::in_several_orders([&] {
      const Memory y(given.count()), y_even(given.even_count()), dx(given.count());
      blur_forward(
          shape,
          {.x = x.data(), .y = all ? y.data() : nullptr, .y_even = even ? y_even.data() : nullptr},
          nullptr);
      blur_backward(shape,
                    {.dy = all ? dy.data() : nullptr,
                     .dy_even = even ? dy_even.data() : nullptr,
                     .dx = dx.data()},
                    nullptr);
      check(
          Results{all ? y.values() : given.y, even ? y_even.values() : given.y_even, dx.values()});
    });
  }
  /// Allows one rounding to the type, and the rounding of sums in float32.
  static void expect_close(const char* what, const std::vector<double>& found,
                           const std::vector<double>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i],
                  std::abs(expected[i]) * Type::kRounding * 1.01 + 0x1p-24 * 20)
          << what << " " << i;
    }
  }
};
TYPED_TEST_SUITE(BlurKernelTest, ValueTypes);

TYPED_TEST(BlurKernelTest, IsCloseToDoublePrecisionForAnyShape) {
  for (const auto& [all, even] : {std::pair{true, false}, {false, true}, {true, true}}) {
    for (const Size& size : kSizes) {
      SCOPED_TRACE(testing::Message()
                   << size.images << " x " << size.height << " x " << size.width << " x "
                   << size.channels << (all ? ", all" : "") << (even ? ", even" : ""));
      const Reference given = TestFixture::reference(size, all, even);
      this->run(given, all, even, [&](const auto& results) {
        TestFixture::expect_close("y", results.y, given.y);
        TestFixture::expect_close("y_even", results.y_even, given.y_even);
        TestFixture::expect_close("dx", results.dx, given.dx);
      });
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TYPED_TEST(BlurKernelTest, BothResultsAreThoseOfSeparateCalls) {
  const Reference given = TestFixture::reference({2, 11, 9, 16}, true, true);
  std::optional<typename TestFixture::Results> both;
  this->run(given, true, true, [&](const auto& results) { both = results; });
  this->run(given, true, false, [&](const auto& results) { EXPECT_EQ(results.y, both->y); });
  this->run(given, false, true,
            [&](const auto& results) { EXPECT_EQ(results.y_even, both->y_even); });
}

/// NaN in one channel of a pixel reaches the 3 x 3 pixels around it in this channel, and nothing
/// else.
TYPED_TEST(BlurKernelTest, ChannelsAndImagesDoNotMix) {
  Reference given = TestFixture::reference({3, 5, 6, 8}, true, false);
  given.x[given.at(1, 2, 3, 4)] = NAN;
  this->run(given, true, false, [&](const auto& results) {
    EXPECT_EQ(std::ranges::count_if(results.y, [](double value) { return std::isnan(value); }), 9);
    EXPECT_TRUE(std::isnan(results.y[given.at(1, 1, 2, 4)]));
    EXPECT_TRUE(std::isnan(results.y[given.at(1, 3, 4, 4)]));
  });
}

}  // namespace
}  // namespace precast::models
