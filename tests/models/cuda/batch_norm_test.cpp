// Built twice: for the host (kernels_test) and for a GPU (kernels_gpu_test).
#include "models/cuda/batch_norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tests/models/cuda/norm_side.h"

namespace precast::models {
namespace {

using test::DeviceNorm;
using test::expect_near;
using test::F32;
using test::GuardedArray;
using test::kNormSizes;
using test::NormResults;
using test::NormSize;
using test::random_values;
using test::ReferenceNorm;
using test::rounded;
using test::ValueTypes;

/// The operations to compute in addition to the norm.
struct Options {
  bool relu = true;
  bool residual = false;
  bool fork = false;
};

struct Reference {
  Options options;
  /// Rounds to the type of the activations.
  double (*round)(double) = nullptr;
  ReferenceNorm norm;
  std::vector<double> residual, dy, fork, y, d_residual;

  /// @param decisions values that are positive where the ReLU passes its input; by default, the
  /// inputs of the reference's ReLU
  void compute(const std::vector<double>* decisions = nullptr) {
    norm.normalize();
    y.assign(dy.size(), 0);
    d_residual.assign(dy.size(), 0);
    for (std::size_t i = 0; i < dy.size(); ++i) {
      const double value = norm.y(i) + (options.residual ? residual[i] : 0);
      if (options.relu && !((decisions != nullptr ? (*decisions)[i] : value) > 0)) continue;
      y[i] = value;
      d_residual[i] = dy[i] + (options.fork ? fork[i] : 0);
      // The kernels compute the other gradients from the residual's gradient that they have
      // written.
      if (options.residual) d_residual[i] = round(d_residual[i]);
    }
    norm.differentiate(d_residual);
  }
};

template <typename Type>
class BatchNormKernelTest : public test::DeviceTest {
 protected:
  using Memory = GuardedArray<Type>;

  static Reference reference(const NormSize& size, const Options& options, double mean = 0.5,
                             double std = 2) {
    const auto channels = static_cast<std::size_t>(size.channels);
    const std::size_t count = static_cast<std::size_t>(size.rows) * channels;
    Reference made;
    made.options = options;
    made.round = [](double value) { return Type::to(Type::of(value)); };
    made.norm = ReferenceNorm(rounded<Type>(random_values(count, 1, mean, std)), channels, 5);
    made.residual = rounded<Type>(random_values(count, 2, 0, 1));
    made.dy = rounded<Type>(random_values(count, 3, 0.1, 1));
    made.fork = rounded<Type>(random_values(count, 4, 0, 1));
    made.compute();
    return made;
  }

  struct Results {
    std::vector<double> y, d_residual;
    NormResults norm;
    bool operator==(const Results&) const = default;
  };

  /// Calls check(results) for each order of threads.
  template <typename Check>
  void run(const Reference& given, Check check) {
    const std::size_t count = given.dy.size();
    const BatchNormShape shape = given.norm.shape(Type::kType);
    const Options& options = given.options;
    const Memory residual(given.residual), dy(given.dy), fork(given.fork);
    test::in_several_orders([&] {
      const Memory y(count), d_residual(count);
      const test::DeviceArray<std::uint8_t> mask(batch_norm_mask_bytes(shape));
      const DeviceNorm<Type> norm(given.norm, shape);
      BatchNormForward forward = norm.forward();
      forward.residual = options.residual ? residual.data() : nullptr;
      forward.relu = options.relu;
      forward.y = y.data();
      forward.mask = mask.data();
      batch_norm_forward(shape, forward, nullptr);
      BatchNormBackward backward = norm.backward();
      backward.dy = dy.data();
      backward.dy_fork = options.fork ? fork.data() : nullptr;
      backward.relu = options.relu;
      backward.mask = options.residual && options.relu ? mask.data() : nullptr;
      backward.d_residual = options.residual ? d_residual.data() : nullptr;
      batch_norm_backward(shape, backward, nullptr);
      check(Results{y.values(), options.residual ? d_residual.values() : std::vector<double>{},
                    NormResults(norm)});
    });
  }

  /// Compares with double precision. The ReLUs may decide differently only if a value is almost 0,
  /// so the reference uses the kernels' decisions.
  static void expect_close(Reference given, const Results& results) {
    expect_near<Type>("y", results.y, given.y, 1e-5);
    given.compute(&results.y);
    if (given.options.residual)
      expect_near<Type>("d_residual", results.d_residual, given.d_residual);
    test::expect_close<Type>(given.norm, results.norm);
  }
};
TYPED_TEST_SUITE(BatchNormKernelTest, ValueTypes);

TYPED_TEST(BatchNormKernelTest, IsCloseToDoublePrecisionForAnyShape) {
  for (const NormSize& size : kNormSizes) {
    const Reference given = TestFixture::reference(size, {});
    SCOPED_TRACE(testing::Message() << size.rows << " x " << size.channels);
    this->run(given, [&](const auto& results) { TestFixture::expect_close(given, results); });
    if (testing::Test::HasFatalFailure()) return;
  }
}

TYPED_TEST(BatchNormKernelTest, AddsResidualsAndForks) {
  for (const bool relu : {true, false}) {
    for (const bool residual : {true, false}) {
      for (const bool fork : {true, false}) {
        for (const NormSize& size : {NormSize{50, 5}, NormSize{301, 24}}) {
          const Reference given = TestFixture::reference(size, {relu, residual, fork});
          SCOPED_TRACE(testing::Message()
                       << size.rows << " x " << size.channels << ", relu " << relu << ", residual "
                       << residual << ", fork " << fork);
          this->run(given, [&](const auto& results) { TestFixture::expect_close(given, results); });
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

/// torch's ReLU does the same. In 16 bits, rounding makes outputs of zero common.
TYPED_TEST(BatchNormKernelTest, PassesNoGradientWhereTheOutputIsZero) {
  for (const bool residual : {true, false}) {
    Reference given = TestFixture::reference({50, 16}, {.residual = residual});
    for (auto* values : {&given.norm.weight, &given.norm.bias, &given.residual})
      std::fill(values->begin(), values->end(), 0);
    this->run(given, [&](const auto& results) {
      for (const auto* values : {&results.y, &results.norm.dx, &results.d_residual})
        for (const double value : *values) ASSERT_EQ(value, 0);
      for (const auto* values : {&results.norm.d_weight, &results.norm.d_bias})
        for (const float value : *values) ASSERT_EQ(value, 0);
    });
  }
}

TYPED_TEST(BatchNormKernelTest, DoesNotDependOnTheOrderOfThreads) {
  const Reference given = TestFixture::reference({5000, 24}, {.residual = true, .fork = true});
  std::optional<typename TestFixture::Results> first;
  this->run(given, [&](const auto& results) {
    if (!first) first = results;
    EXPECT_TRUE(results == *first);
  });
}

using BatchNormKernelPrecisionTest = BatchNormKernelTest<F32>;
/// A variance computed from sums of squares would lose all significant digits.
TEST_F(BatchNormKernelPrecisionTest, VariancesSurviveLargeMeans) {
  const Reference given = reference({3001, 4}, {}, 1000, 0.5);
  run(given, [&](const Results& results) {
    for (std::size_t c = 0; c < 4; ++c)
      EXPECT_NEAR(results.norm.inv_std[c], given.norm.inv_std[c], 1e-4 * given.norm.inv_std[c]);
  });
}

}  // namespace
}  // namespace precast::models
