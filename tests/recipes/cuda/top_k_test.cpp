// Built twice: for the host (kernels_test) and for a GPU (kernels_gpu_test).
#include "recipes/cuda/top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/support/float_types.h"

namespace precast::recipes {
namespace {

using test::GuardedArray;
using test::random_values;
using test::rounded;
using test::ValueTypes;

struct Size {
  int rows, classes;
};
/// One row, one class, classes that do and do not fill packs of 4 and 8, a warp and a block; more
/// rows than a block has threads.
constexpr Size kSizes[] = {{1, 1},  {1, 2},   {3, 5},    {2, 8},    {40, 10},    {50, 33},
                           {3, 31}, {9, 257}, {5, 1000}, {5, 1001}, {2, 50'000}, {520, 12}};

template <typename Type>
class TopKKernelTest : public test::DeviceTest {
 protected:
  /// A label's position in the sorted row.
  static std::int64_t rank_of(const std::vector<double>& logits, const Size& size, int row,
                              std::int64_t label) {
    std::vector<int> order(static_cast<std::size_t>(size.classes));
    std::iota(order.begin(), order.end(), 0);
    const auto begin = logits.begin() + std::ptrdiff_t{row} * size.classes;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      if (std::isnan(begin[a]) || std::isnan(begin[b]))
        return std::isnan(begin[a]) && !std::isnan(begin[b]);
      return begin[a] > begin[b];
    });
    return std::find(order.begin(), order.end(), label) - order.begin();
  }
  static void expect_sorted(const Size& size, std::vector<double> logits,
                            const std::vector<std::int64_t>& labels) {
    SCOPED_TRACE(testing::Message() << size.rows << " x " << size.classes);
    logits = rounded<Type>(std::move(logits));
    const std::int64_t ks[] = {1, 5, 2, std::int64_t{1} << 40};
    std::vector<double> expected(4);
    for (int row = 0; row < size.rows; ++row) {
      const std::int64_t label = labels[static_cast<std::size_t>(row)];
      if (label < 0 || label >= size.classes) continue;
      for (std::size_t i = 0; i < 4; ++i)
        expected[i] += rank_of(logits, size, row, label) < ks[i] ? 1 : 0;
    }
    const LogitsShape shape{size.rows, size.classes, Type::kType};
    const GuardedArray<Type> memory(logits);
    const test::DeviceArray<std::int64_t> on_device(labels);
    test::in_several_orders([&] {
      for (std::size_t i = 0; i < 4; ++i) {
        const test::DeviceArray<double> count(1);
        const auto workspace = test::device_memory(top_k_workspace_bytes(shape));
        count_top_k(shape,
                    {.logits = memory.data(),
                     .labels = on_device.data(),
                     .k = ks[i],
                     .count = count.data(),
                     .workspace = workspace.get()},
                    nullptr);
        ASSERT_EQ(count.values()[0], expected[i]) << "k " << ks[i];
      }
    });
  }
  static std::vector<double> logits(const Size& size) {
    return random_values(
        static_cast<std::size_t>(size.rows) * static_cast<std::size_t>(size.classes), 1, 0.5, 3);
  }
  /// Labels that are spread over all classes, beginning with the last one.
  static std::vector<std::int64_t> labels(const Size& size) {
    std::vector<std::int64_t> made;
    for (int row = 0; row < size.rows; ++row)
      made.push_back((std::int64_t{row} * 7919 + size.classes - 1) % size.classes);
    return made;
  }
};
TYPED_TEST_SUITE(TopKKernelTest, ValueTypes);

TYPED_TEST(TopKKernelTest, CountsAsASortDoes) {
  for (const Size& size : kSizes) {
    TestFixture::expect_sorted(size, TestFixture::logits(size), TestFixture::labels(size));
    if (testing::Test::HasFatalFailure()) return;
  }
}

/// In 16 bits, many logits are equal.
TYPED_TEST(TopKKernelTest, OfEqualLogitsTheLowerClassIsFirst) {
  for (const Size& size : {Size{60, 10}, Size{40, 8}, Size{8, 1000}}) {
    std::vector<double> values = TestFixture::logits(size);
    for (double& value : values) value = std::min(2.0, std::round(value));
    TestFixture::expect_sorted(size, values, TestFixture::labels(size));
    std::fill(values.begin(), values.end(), 0);
    TestFixture::expect_sorted(size, values, TestFixture::labels(size));
  }
}

TYPED_TEST(TopKKernelTest, NanIsAboveInfinityAndInfinityAboveNumbers) {
  const Size size{100, 10};
  std::vector<double> values = TestFixture::logits(size);
  using Limits = std::numeric_limits<double>;
  const double special[] = {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()};
  for (std::size_t i = 0; i < values.size(); i += 3) values[i] = special[i / 3 % 3];
  TestFixture::expect_sorted(size, values, TestFixture::labels(size));
}

TYPED_TEST(TopKKernelTest, ALabelThatIsNoClassNeverCounts) {
  const Size size{4, 3};
  TestFixture::expect_sorted(size, TestFixture::logits(size), {-1, 3, std::int64_t{1} << 32, -100});
}

}  // namespace
}  // namespace precast::recipes
