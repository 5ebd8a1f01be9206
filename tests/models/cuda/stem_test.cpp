// Built twice: for the host (kernels_test) and for a GPU (kernels_gpu_test).
#include "models/cuda/stem.h"

#include <gtest/gtest.h>

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
/// The smallest images, each number of channels, more pixels than a block has threads.
constexpr Size kSizes[] = {{1, 2, 2, 1}, {3, 2, 6, 2}, {2, 8, 4, 3}, {1, 6, 10, 4}, {2, 40, 36, 3}};

std::vector<double> rearranged(const Size& size, const std::vector<double>& x) {
  const int rows = size.height / 2 + 3, columns = size.width / 2 + 3;
  std::vector<double> y(static_cast<std::size_t>(size.images * rows * columns * 16), 0);
  for (int n = 0; n < size.images; ++n) {
    for (int row = 0; row < size.height; ++row) {
      for (int column = 0; column < size.width; ++column) {
        for (int c = 0; c < size.channels; ++c) {
          const int from = ((n * size.height + row) * size.width + column) * size.channels + c;
          const int pixel = (n * rows + row / 2 + 2) * columns + column / 2 + 2;
          const int to = pixel * 16 + 4 * (2 * (row % 2) + column % 2) + c;
          y[static_cast<std::size_t>(to)] = x[static_cast<std::size_t>(from)];
        }
      }
    }
  }
  return y;
}

template <typename Type>
class StemKernelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = test::missing_device(); !reason.empty()) GTEST_SKIP() << reason;
  }
};
TYPED_TEST_SUITE(StemKernelTest, ValueTypes);

TYPED_TEST(StemKernelTest, TurnsPixelsIntoChannels) {
  using Memory = GuardedArray<TypeParam>;
  for (const Size& size : kSizes) {
    const StemShape shape{size.images, size.height, size.width, size.channels, TypeParam::kType};
    const auto count =
        static_cast<std::size_t>(size.images * size.height * size.width * size.channels);
    const std::vector<double> values = rounded<TypeParam>(random_values(count, 1, 0, 2));
    const Memory x(values);
    const std::vector<double> expected = rearranged(size, values);
    ASSERT_EQ(stem_values(shape), expected.size());
    test::in_several_orders([&] {
      const Memory y(expected.size());
      stem_input(shape, {.x = x.data(), .y = y.data()}, nullptr);
      ASSERT_EQ(y.values(), expected)
          << size.height << " x " << size.width << " x " << size.channels;
    });
  }
}

}  // namespace
}  // namespace precast::models
