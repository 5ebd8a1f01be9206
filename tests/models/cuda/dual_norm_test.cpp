// Built twice: for the host (kernels_test) and for a GPU (kernels_gpu_test).
#include "models/cuda/dual_norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "tests/models/cuda/norm_side.h"

namespace precast::models {
namespace {

using test::DeviceNorm;
using test::expect_near;
using test::GuardedArray;
using test::kNormSizes;
using test::NormResults;
using test::NormSize;
using test::random_values;
using test::ReferenceNorm;
using test::rounded;
using test::ValueTypes;

struct Reference {
  bool forks = false;
  /// Rounds to the type of the activations.
  double (*round)(double) = nullptr;
  ReferenceNorm norm, shortcut;
  std::vector<double> dy, fork, y, sum;

  /// @param decisions values that are positive where the ReLU passes its input; by default, the
  /// inputs of the reference's ReLU
  void compute(const std::vector<double>* decisions = nullptr) {
    norm.normalize();
    shortcut.normalize();
    y.assign(dy.size(), 0);
    sum.assign(dy.size(), 0);
    for (std::size_t i = 0; i < dy.size(); ++i) {
      const double value = norm.y(i) + shortcut.y(i);
      if (!((decisions != nullptr ? (*decisions)[i] : value) > 0)) continue;
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
class DualNormKernelTest : public test::DeviceTest {
 protected:
  using Memory = GuardedArray<Type>;

  static Reference reference(const NormSize& size, bool forks) {
    const auto channels = static_cast<std::size_t>(size.channels);
    const std::size_t count = static_cast<std::size_t>(size.rows) * channels;
    Reference made;
    made.forks = forks;
    made.round = [](double value) { return Type::to(Type::of(value)); };
    made.dy = rounded<Type>(random_values(count, 1, 0.1, 1));
    made.fork = rounded<Type>(random_values(count, 2, 0, 1));
    made.norm = ReferenceNorm(rounded<Type>(random_values(count, 3, 0.5, 2)), channels, 4);
    made.shortcut = ReferenceNorm(rounded<Type>(random_values(count, 8, 0.5, 2)), channels, 9);
    made.compute();
    return made;
  }

  struct Results {
    std::vector<double> y, sum;
    NormResults norm, shortcut;
    bool operator==(const Results&) const = default;
  };

  /// Calls check(results) for each order of threads.
  template <typename Check>
  void run(const Reference& given, Check check) {
    const std::size_t count = given.dy.size();
    const BatchNormShape shape = given.norm.shape(Type::kType);
    const Memory dy(given.dy), fork(given.fork);
    test::in_several_orders([&] {
      const Memory y(count), sum(count);
      const test::DeviceArray<std::uint8_t> mask(batch_norm_mask_bytes(shape));
      const DeviceNorm<Type> norm(given.norm, shape), shortcut(given.shortcut, shape);
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
      check(Results{y.values(), sum.values(), NormResults(norm), NormResults(shortcut)});
    });
  }

  /// Compares with double precision. The ReLU may decide differently only if a value is almost 0,
  /// so the reference uses the kernels' decisions.
  static void expect_close(Reference given, const Results& results) {
    expect_near<Type>("y", results.y, given.y, 1e-5);
    given.compute(&results.y);
    expect_near<Type>("gradient of the sum", results.sum, given.sum);
    test::expect_close<Type>(given.norm, results.norm);
    test::expect_close<Type>(given.shortcut, results.shortcut);
  }
};
TYPED_TEST_SUITE(DualNormKernelTest, ValueTypes);

TYPED_TEST(DualNormKernelTest, IsCloseToDoublePrecisionForAnyShape) {
  for (const bool forks : {false, true}) {
    for (const NormSize& size : kNormSizes) {
      SCOPED_TRACE(testing::Message()
                   << size.rows << " x " << size.channels << (forks ? ", fork" : ""));
      const Reference given = TestFixture::reference(size, forks);
      this->run(given, [&](const auto& results) { TestFixture::expect_close(given, results); });
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

/// torch's ReLU does the same. In 16 bits, rounding makes outputs of zero common.
TYPED_TEST(DualNormKernelTest, PassesNoGradientWhereTheOutputIsZero) {
  Reference given = TestFixture::reference({50, 16}, true);
  for (ReferenceNorm* side : {&given.norm, &given.shortcut})
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
