// Built twice, see fused_device.h.
#include "recipes/detail/fused_logits.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "framework/core/error.h"
#include "recipes/register.h"
#include "tests/recipes/fused_device.h"
#include "tests/support/noise_tensor.h"
#include "tests/support/part_spec.h"

namespace precast::test {
namespace {

using recipes::detail::fused_cross_entropy;
using recipes::detail::fused_top_k;

std::unique_ptr<Loss> make_cross_entropy(const std::string& options) {
  LossRegistry registry("loss");
  recipes::register_losses(registry);
  return registry.make(part_spec("cross_entropy", options));
}

std::unique_ptr<Metric> make_top_k(const std::string& options) {
  MetricRegistry registry("metric");
  recipes::register_metrics(registry);
  return registry.make(part_spec("top_k", options));
}

double half_of_the_last_digit(at::ScalarType type) {
  if (type == at::kHalf) return 0x1p-11;
  return type == at::kBFloat16 ? 0x1p-8 : 0x1p-24;
}

class FusedLogitsTest : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override {
    if (const std::string reason = missing_fused_device(); !reason.empty()) GTEST_SKIP() << reason;
    kernels_.emplace();
  }
  [[nodiscard]] static at::Tensor logits(std::int64_t samples, std::int64_t classes) {
    return noise_tensor(1, {samples, classes}, 16).to(fused_device(), GetParam());
  }
  [[nodiscard]] static at::Tensor labels(std::int64_t samples, std::int64_t classes) {
    return ((at::arange(samples, at::kLong) * 7919 + 3) % classes).to(fused_device());
  }
  /// torch's loss in double precision, and its gradient.
  static std::pair<double, at::Tensor> exact(const at::Tensor& logits, const at::Tensor& labels,
                                             double smoothing, double scale) {
    const at::Tensor x = logits.detach().to(at::kCPU, at::kDouble).requires_grad_();
    const at::Tensor loss =
        at::cross_entropy_loss(x, labels.to(at::kCPU), {}, at::Reduction::Mean, -100, smoothing);
    (loss * scale).backward();
    return {loss.item<double>(), x.grad()};
  }

 private:
  std::optional<CountedKernels> kernels_;
};

TEST_P(FusedLogitsTest, LossAndScaledGradientAreTorchs) {
  const std::vector<std::int64_t> shapes[] = {{1, 2}, {5, 10}, {16, 1000}, {3, 17}, {300, 8}};
  for (const std::vector<std::int64_t>& shape : shapes) {
    for (const double smoothing : {0.0, 0.1}) {
      SCOPED_TRACE(fmt::format("{} x {}, {}", shape[0], shape[1], smoothing));
      const double scale = 1024;
      const at::Tensor x = logits(shape[0], shape[1]).requires_grad_();
      at::Tensor classes = labels(shape[0], shape[1]);
      if (shape[0] > 2) classes[2] = -100;
      const auto [loss, gradient] = exact(x, classes, smoothing, scale);
      const at::Tensor got = fused_cross_entropy(x, classes, smoothing);
      EXPECT_EQ(got.scalar_type(), at::kFloat);
      EXPECT_NEAR(got.item<double>(), loss, 1e-5 * (1 + loss));
      (got * scale).backward();
      ASSERT_EQ(x.grad().scalar_type(), GetParam());
      const at::Tensor error = (x.grad().to(at::kCPU, at::kDouble) - gradient).abs();
      const at::Tensor bound =
          gradient.abs() * (1.01 * half_of_the_last_digit(GetParam())) + 4e-6 * scale;
      EXPECT_LE((error - bound).max().item<double>(), 0);
    }
  }
  EXPECT_EQ(CountedKernels::calls().cross_entropy, 4 * std::ssize(shapes));
}

TEST_P(FusedLogitsTest, SecondDerivativesAreAnError) {
  const at::Tensor x = logits(3, 8).requires_grad_();
  const at::Tensor loss = fused_cross_entropy(x, labels(3, 8), 0.1);
  EXPECT_THROW(torch::autograd::grad({loss}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true),
               std::logic_error);
}

TEST_P(FusedLogitsTest, ABackwardPassCanBeRepeated) {
  const at::Tensor x = logits(3, 8).requires_grad_();
  const at::Tensor loss = fused_cross_entropy(x, labels(3, 8), 0.1);
  loss.backward({}, /*retain_graph=*/true);
  const at::Tensor once = x.grad().clone();
  loss.backward();
  EXPECT_TRUE(x.grad().equal(once * 2));
}

/// cuda/top_k_test.cpp tests equal logits, because torch does not define their order on a CPU.
TEST_P(FusedLogitsTest, TopKIsTorchsForDistinctLogits) {
  // Each row is a permutation of integers, which are exact in every type.
  for (const std::int64_t classes : {5, 16, 101}) {
    const at::Tensor rows = at::arange(12, at::kLong).unsqueeze(1);
    const at::Tensor x =
        ((at::arange(classes, at::kLong) * 3 + rows * 7) % classes).to(fused_device(), GetParam());
    const at::Tensor target = labels(12, classes);
    for (const std::int64_t k : {1, 3, 5}) {
      const at::Tensor best = std::get<1>(at::topk(x.to(at::kCPU, at::kFloat), k, 1));
      const double expected = at::eq(best, target.to(at::kCPU).unsqueeze(1)).sum().item<double>();
      const at::Tensor counted = fused_top_k(x, target, k);
      EXPECT_EQ(counted.scalar_type(), at::kDouble);
      EXPECT_EQ(counted[0].item<double>(), expected) << classes << " classes, k " << k;
    }
  }
}

TEST_P(FusedLogitsTest, PartsUseKernelsOnlyIfTheRecipeSaysSo) {
  const at::Tensor x = logits(4, 16);
  const Batch batch = make_batch({}, labels(4, 16));
  const auto calls = [&](const std::string& kernels) {
    CountedKernels::reset();
    static_cast<void>((*make_cross_entropy(kernels))(x, batch));
    static_cast<void>(make_top_k(kernels)->count(x, batch));
    return CountedKernels::calls();
  };
  EXPECT_EQ(calls("{kernels: fused}"), (FusedCalls{.cross_entropy = 1, .count_top_k = 1}));
  EXPECT_EQ(calls("{kernels: reference}"), FusedCalls());
  EXPECT_EQ(calls("{kernels: auto}"), FusedCalls());
  EXPECT_EQ(calls("{}"), FusedCalls());
  EXPECT_THROW((void)make_cross_entropy("{kernels: fast}"), ConfigError);
}

TEST_P(FusedLogitsTest, WhatKernelsCannotReadUsesTheReference) {
  const auto loss = make_cross_entropy("{kernels: fused, label_smoothing: 0.1}");
  const auto top_1 = make_top_k("{kernels: fused}");
  const at::Tensor x = logits(16, 16);
  const at::Tensor classes = labels(16, 16);
  const Batch batch = make_batch({}, classes);
  CountedKernels::reset();
  // A transposed tensor, an address that is not a multiple of 16, and a type without kernels.
  for (const at::Tensor& other :
       {x.t(), logits(17, 16).flatten().slice(0, 1, 257).view({16, 16}), x.to(at::kDouble)}) {
    EXPECT_TRUE(std::isfinite((*loss)(other, batch).item<double>()));
    EXPECT_LE(top_1->count(other, batch)[0].item<double>(), 16);
  }
  // Probabilities, and the losses of single samples.
  const at::Tensor shares = at::softmax(noise_tensor(2, {16, 16}).to(fused_device()), 1);
  EXPECT_TRUE(std::isfinite((*loss)(x, make_batch({}, shares)).item<double>()));
  EXPECT_EQ(loss->per_sample(x, batch).size(0), 16);
  EXPECT_EQ(CountedKernels::calls(), FusedCalls());
}

INSTANTIATE_TEST_SUITE_P(Types, FusedLogitsTest,
                         ::testing::Values(at::kFloat, at::kHalf, at::kBFloat16),
                         [](const auto& test) { return std::string(c10::toString(test.param)); });

}  // namespace
}  // namespace precast::test
