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

/// One pixel, each number of channels, more pixels than a block reads.
constexpr StemShape kShapes[] = {{1, 3}, {7, 1}, {1024, 2}, {2049, 3}};

std::vector<double> padded(const StemShape& shape, const std::vector<double>& x) {
  std::vector<double> y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    y.push_back(x[i]);
    if ((i + 1) % static_cast<std::size_t>(shape.channels) == 0)
      y.resize(4 * (y.size() / 4 + 1), 0);
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

TYPED_TEST(StemKernelTest, AppendsChannelsOfZeros) {
  using Memory = GuardedArray<TypeParam>;
  for (StemShape shape : kShapes) {
    shape.type = TypeParam::kType;
    const auto count = static_cast<std::size_t>(shape.pixels * shape.channels);
    const std::vector<double> values = rounded<TypeParam>(random_values(count, 1, 0, 2));
    const Memory x(values);
    const std::vector<double> expected = padded(shape, values);
    test::in_several_orders([&] {
      const Memory y(expected.size());
      stem_input(shape, {.x = x.data(), .y = y.data()}, nullptr);
      ASSERT_EQ(y.values(), expected) << shape.pixels << " x " << shape.channels;
    });
  }
}

}  // namespace
}  // namespace precast::models
