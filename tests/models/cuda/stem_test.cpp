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

/// Fewer pixels than a block has threads, as many as a block reads, and more.
constexpr std::int64_t kPixels[] = {1, 7, 1024, 2049};

std::vector<double> padded(const std::vector<double>& x) {
  std::vector<double> y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    y.push_back(x[i]);
    if (i % 3 == 2) y.push_back(0);
  }
  return y;
}

template <typename Type>
class StemKernelTest : public test::DeviceTest {};
TYPED_TEST_SUITE(StemKernelTest, ValueTypes);

TYPED_TEST(StemKernelTest, AppendsAChannelOfZeros) {
  using Memory = GuardedArray<TypeParam>;
  for (const std::int64_t pixels : kPixels) {
    const StemShape shape{pixels, TypeParam::kType};
    const std::vector<double> values =
        rounded<TypeParam>(random_values(static_cast<std::size_t>(3 * pixels), 1, 0, 2));
    const Memory x(values);
    const std::vector<double> expected = padded(values);
    test::in_several_orders([&] {
      const Memory y(expected.size());
      stem_input(shape, {.x = x.data(), .y = y.data()}, nullptr);
      ASSERT_EQ(y.values(), expected) << pixels;
    });
  }
}

}  // namespace
}  // namespace precast::models
