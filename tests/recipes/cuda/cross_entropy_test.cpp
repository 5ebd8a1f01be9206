// Built twice: for the host (kernels_test) and for a GPU (kernels_gpu_test).
#include "recipes/cuda/cross_entropy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "tests/support/float_types.h"

namespace precast::recipes {
namespace {

using test::GuardedArray;
using test::random_values;
using test::rounded;
using test::ValueTypes;

constexpr std::int64_t kIgnored = -100;

struct Size {
  int rows, classes;
};
/// One row, one class, classes that do and do not fill packs of 4 and 8, a warp and a block; rows
/// that fit into shared memory and rows that do not; more rows than a block has threads.
constexpr Size kSizes[] = {{1, 1},    {1, 2},    {3, 5},      {2, 8},      {5, 10},  {4, 31},
                           {7, 33},   {3, 257},  {2, 1000},   {3, 1001},   {520, 3}, {2, 8192},
                           {2, 8200}, {2, 9001}, {2, 16'392}, {1, 100'000}};

/// The definition in double precision.
struct Reference {
  Size size{};
  double smoothing = 0, d_loss = 1;
  std::vector<double> logits;
  std::vector<std::int64_t> labels;
  double loss = 0, counted = 0;
  std::vector<double> d_logits;

  [[nodiscard]] double& logit(int row, int column) {
    return logits[static_cast<std::size_t>(row * size.classes + column)];
  }
  void compute() {
    counted = 0;
    for (const std::int64_t label : labels) counted += label != kIgnored ? 1 : 0;
    d_logits.assign(logits.size(), 0);
    double sum = 0;
    for (int row = 0; row < size.rows; ++row)
      if (labels[static_cast<std::size_t>(row)] != kIgnored) sum += row_loss(row);
    loss = sum / counted;
  }

 private:
  double row_loss(int row) {
    const int classes = size.classes;
    const auto begin = logits.begin() + std::ptrdiff_t{row} * classes;
    const double largest = *std::max_element(begin, begin + classes);
    double exps = 0, sum = 0;
    for (int c = 0; c < classes; ++c) {
      exps += std::exp(logit(row, c) - largest);
      sum += logit(row, c) - largest;
    }
    const std::int64_t label = labels[static_cast<std::size_t>(row)];
    const bool is_class = label >= 0 && label < classes;
    const double own = is_class ? logit(row, static_cast<int>(label)) : NAN;
    double own_loss = std::log(exps) - (1 - smoothing) * (own - largest);
    if (smoothing > 0) own_loss -= smoothing / classes * sum;
    for (int c = 0; c < classes; ++c) {
      const double target = smoothing / classes + (c == label ? 1 - smoothing : 0);
      const double share = is_class ? std::exp(logit(row, c) - largest) / exps : NAN;
      d_logits[static_cast<std::size_t>(row * classes + c)] = d_loss / counted * (share - target);
    }
    return own_loss;
  }
};

struct Results {
  double loss = 0;
  std::vector<double> d_logits;
};

template <typename Type>
class CrossEntropyKernelTest : public test::DeviceTest {
 protected:
  static Reference reference(const Size& size, double smoothing = 0.1, double d_loss = 1,
                             double std = 3) {
    Reference made;
    made.size = size;
    // The kernel receives a float.
    made.smoothing = double{static_cast<float>(smoothing)};
    made.d_loss = d_loss;
    const auto rows = static_cast<std::size_t>(size.rows);
    made.logits =
        rounded<Type>(random_values(rows * static_cast<std::size_t>(size.classes), 1, 0.5, std));
    for (std::size_t row = 0; row < rows; ++row)
      made.labels.push_back(static_cast<std::int64_t>(row * 7919 + 1) % size.classes);
    made.compute();
    return made;
  }
  /// Calls check(results) for each order of threads.
  template <typename Check>
  static void run(const Reference& given, Check check) {
    const LogitsShape shape{given.size.rows, given.size.classes, Type::kType};
    const GuardedArray<Type> logits(given.logits);
    const test::DeviceArray<std::int64_t> labels(given.labels);
    const test::DeviceArray<float> d_loss(std::vector<float>{static_cast<float>(given.d_loss)});
    test::in_several_orders([&] {
      const GuardedArray<Type> d_logits(given.logits.size());
      const test::DeviceArray<float> loss(1);
      const auto workspace = test::device_memory(cross_entropy_workspace_bytes(shape));
      cross_entropy(shape,
                    {.logits = logits.data(),
                     .labels = labels.data(),
                     .label_smoothing = static_cast<float>(given.smoothing),
                     .loss = loss.data(),
                     .d_logits = d_logits.data(),
                     .d_loss = d_loss.data(),
                     .workspace = workspace.get()},
                    nullptr);
      check(Results{double{loss.values()[0]}, d_logits.values()});
    });
  }
  static void expect_close(const Reference& given, const Results& results) {
    if (std::isfinite(given.loss)) {
      ASSERT_NEAR(results.loss, given.loss, 2e-6 * (1 + std::abs(given.loss)));
    } else {
      ASSERT_EQ(std::isnan(results.loss), std::isnan(given.loss));
      ASSERT_EQ(std::isinf(results.loss), std::isinf(given.loss));
    }
    const double scale = std::abs(given.d_loss) / given.counted;
    for (std::size_t i = 0; i < results.d_logits.size(); ++i) {
      const double exact = given.d_logits[i];
      ASSERT_EQ(std::isnan(results.d_logits[i]), std::isnan(exact)) << i;
      if (std::isnan(exact)) continue;
      ASSERT_NEAR(results.d_logits[i], exact,
                  std::abs(exact) * Type::kRounding * 1.01 + 2e-6 * scale + 0x1p-25)
          << i;
    }
  }
  static void expect_reference(const Reference& given) {
    SCOPED_TRACE(testing::Message() << given.size.rows << " x " << given.size.classes
                                    << ", smoothing " << given.smoothing);
    run(given, [&](const Results& results) { expect_close(given, results); });
  }
};
TYPED_TEST_SUITE(CrossEntropyKernelTest, ValueTypes);

TYPED_TEST(CrossEntropyKernelTest, IsCloseToDoublePrecisionForAnyShape) {
  for (const Size& size : kSizes) {
    if (size.rows * size.classes < 1500)
      TestFixture::expect_reference(TestFixture::reference(size, 0, 1));
    TestFixture::expect_reference(TestFixture::reference(size, 0.1, 1024));
    if (testing::Test::HasFatalFailure()) return;
  }
}

TYPED_TEST(CrossEntropyKernelTest, HugeLogitsDoNotOverflow) {
  for (const Size& size : {Size{3, 10}, Size{2, 1000}})
    TestFixture::expect_reference(TestFixture::reference(size, 0.1, 1, 12'000));
}

TYPED_TEST(CrossEntropyKernelTest, AConfidentRowKeepsItsSmallGradient) {
  Reference given = TestFixture::reference({2, 16}, 0, 65536, 1);
  given.logit(0, 1) = 20;
  given.compute();
  TestFixture::run(given, [&](const Results& results) {
    for (std::size_t i = 0; i < 16; ++i) {
      if (i == 1) continue;
      EXPECT_NEAR(results.d_logits[i], given.d_logits[i],
                  given.d_logits[i] * (2 * TypeParam::kRounding + 1e-5) + 0x1p-25);
    }
  });
}

/// A masked class has the logit minus infinity; its probability is 0.
TYPED_TEST(CrossEntropyKernelTest, MinusInfinityIsProbabilityZero) {
  for (const double smoothing : {0.0, 0.1}) {
    for (const int classes : {5, 16, 1000}) {
      Reference given = TestFixture::reference({3, classes}, smoothing);
      given.logit(0, 0) = given.logit(1, classes - 1) = -INFINITY;
      given.labels = {1, 1, 1};
      given.compute();
      ASSERT_EQ(std::isfinite(given.loss), smoothing == 0);
      TestFixture::expect_reference(given);
      given.labels[0] = 0;
      given.compute();
      ASSERT_TRUE(std::isinf(given.loss));
      TestFixture::expect_reference(given);
    }
  }
}

/// torch does the same: a row with NaN or +infinity has no softmax, and other rows are not
/// affected.
TYPED_TEST(CrossEntropyKernelTest, RowsWithoutASoftmaxAreNan) {
  for (const double bad : {double{INFINITY}, double{NAN}}) {
    Reference given = TestFixture::reference({3, 40});
    given.logit(1, 37) = bad;
    given.compute();
    for (std::size_t i = 40; i < 80; ++i) given.d_logits[i] = NAN;
    given.loss = NAN;
    TestFixture::expect_reference(given);
  }
  Reference given = TestFixture::reference({3, 40}, 0);
  for (int c = 0; c < 40; ++c) given.logit(2, c) = -INFINITY;
  given.compute();
  ASSERT_TRUE(std::isnan(given.loss));
  TestFixture::expect_reference(given);
}

TYPED_TEST(CrossEntropyKernelTest, IgnoredLabelsDoNotCount) {
  for (const Size& size : {Size{7, 33}, Size{4, 16}, Size{520, 3}}) {
    Reference given = TestFixture::reference(size);
    given.labels.front() = given.labels[2] = given.labels.back() = kIgnored;
    given.compute();
    ASSERT_EQ(given.counted, size.rows - 3);
    TestFixture::expect_reference(given);
  }
  Reference given = TestFixture::reference({3, 16});
  std::fill(given.labels.begin(), given.labels.end(), kIgnored);
  given.compute();
  TestFixture::run(given, [&](const Results& results) {
    EXPECT_TRUE(std::isnan(results.loss));
    for (const double value : results.d_logits) ASSERT_EQ(value, 0);
  });
}

TYPED_TEST(CrossEntropyKernelTest, ALabelThatIsNoClassMakesTheLossNan) {
  for (const std::int64_t label : {std::int64_t{-1}, std::int64_t{16}, std::int64_t{1} << 40}) {
    Reference given = TestFixture::reference({3, 16});
    given.labels[1] = label;
    given.compute();
    ASSERT_TRUE(std::isnan(given.loss));
    TestFixture::expect_reference(given);
  }
}

TYPED_TEST(CrossEntropyKernelTest, DoesNotDependOnTheOrderOfThreads) {
  for (const Size& size : {Size{30, 1000}, Size{1, 20'001}}) {
    const Reference given = TestFixture::reference(size);
    std::optional<Results> first;
    TestFixture::run(given, [&](const Results& results) {
      if (!first) first = results;
      EXPECT_EQ(results.loss, first->loss);
      EXPECT_EQ(results.d_logits, first->d_logits);
    });
  }
}

TYPED_TEST(CrossEntropyKernelTest, LossAndGradientCanBeComputedApart) {
  const Reference given = TestFixture::reference({5, 24});
  std::optional<Results> both;
  TestFixture::run(given, [&](const Results& results) { both = results; });
  const LogitsShape shape{5, 24, TypeParam::kType};
  const GuardedArray<TypeParam> logits(given.logits), d_logits(given.logits.size());
  const test::DeviceArray<std::int64_t> labels(given.labels);
  const test::DeviceArray<float> loss(1);
  const auto workspace = test::device_memory(cross_entropy_workspace_bytes(shape));
  test::in_several_orders([&] {
    CrossEntropyCall call{.logits = logits.data(),
                          .labels = labels.data(),
                          .label_smoothing = static_cast<float>(given.smoothing),
                          .loss = loss.data(),
                          .workspace = workspace.get()};
    cross_entropy(shape, call, nullptr);
    call.loss = nullptr;
    call.d_logits = d_logits.data();
    cross_entropy(shape, call, nullptr);
  });
  EXPECT_EQ(double{loss.values()[0]}, both->loss);
  EXPECT_EQ(d_logits.values(), both->d_logits);
}

}  // namespace
}  // namespace precast::recipes
