// Built twice, see fused_device.h.
#include "models/detail/fused_norm_pool.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/detail/batch_norm.h"
#include "tests/models/fused_device.h"
#include "tests/support/noise_tensor.h"

namespace precast::test {
namespace {

using models::detail::BatchNorm2d;
using models::detail::Forked;
using models::detail::MaxPool2d;

/// A norm with random parameters. The weight of every other channel is negative.
BatchNorm2d some_norm(std::int64_t channels) {
  const at::NoGradGuard no_grad;
  BatchNorm2d norm(channels);
  const at::Tensor sign = 1 - 2 * at::arange(channels, at::kFloat).remainder(2);
  norm->weight.copy_((noise_tensor(4, {channels}, 0.6) + 1) * sign);
  norm->bias.copy_(noise_tensor(5, {channels}, 0.6));
  norm->to(fused_device());
  return norm;
}

at::Tensor activations(at::IntArrayRef shape, at::ScalarType type) {
  return channels_last(noise_tensor(1, shape, 4) + 0.5, type);
}

class FusedNormPoolTest : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override {
    if (const std::string reason = missing_fused_device(); !reason.empty()) GTEST_SKIP() << reason;
    kernels_.emplace();
  }
  [[nodiscard]] static Forked fused(BatchNorm2d norm, const at::Tensor& x) {
    norm->fuse();
    MaxPool2d pool(3, 2, 1);
    pool->fuse();
    return norm->forward_relu_pool(x, pool);
  }

 private:
  std::optional<CountedKernels> kernels_;
};

TEST_P(FusedNormPoolTest, IsTheCompositionInDoublePrecision) {
  const std::vector<std::int64_t> shapes[] = {{2, 1, 1, 1},  {1, 3, 5, 7},   {2, 8, 1, 4},
                                              {3, 13, 4, 3}, {1, 24, 9, 10}, {4, 64, 6, 6}};
  for (const std::vector<std::int64_t>& shape : shapes) {
    SCOPED_TRACE(testing::PrintToString(shape));
    const at::Tensor x = activations(shape, GetParam()).requires_grad_();
    BatchNorm2d norm = some_norm(shape[1]);
    const at::Tensor exact_x = x.detach().to(at::kCPU, at::kDouble).requires_grad_();
    BatchNorm2d exact = some_norm(shape[1]);
    exact->to(at::kCPU, at::kDouble);

    const Forked result = fused(norm, x);
    const at::Tensor expected =
        at::max_pool2d(at::relu(exact->forward(exact_x)), {3, 3}, {2, 2}, {1, 1});
    EXPECT_EQ(result.y.scalar_type(), GetParam());
    EXPECT_TRUE(result.y.is_contiguous(at::MemoryFormat::ChannelsLast));
    const at::Tensor dy = channels_last(noise_tensor(2, result.y.sizes(), 2) + 0.1, GetParam()),
                     d_fork = channels_last(noise_tensor(3, result.y.sizes(), 2), GetParam());
    torch::autograd::backward({result.y, result.fork}, {dy, d_fork});
    expected.backward(dy.to(at::kCPU, at::kDouble) + d_fork.to(at::kCPU, at::kDouble));

    // The tolerances allow for rounding to the type, and for a small error in float32, which the
    // norm multiplies.
    const double ulp = 1.01 * rounding(GetParam());
    const auto pixels = static_cast<double>(x.numel()) / static_cast<double>(shape[1]);
    const at::Tensor variance = exact_x.detach().var({0, 2, 3}, /*unbiased=*/false);
    const double scale =
        (exact->weight.detach().abs() / (variance + 1e-5).sqrt()).max().item<double>();
    expect_close("y", result.y, expected, ulp, 1e-5 + 1e-6 * scale);
    expect_close("running_mean", norm->running_mean, exact->running_mean, 1e-6, 2e-6);
    expect_close("running_var", norm->running_var, exact->running_var, 1e-5, 1e-5);
    expect_close("d_weight", norm->weight.grad(), exact->weight.grad(), 0, 1e-5 * pixels);
    expect_close("d_bias", norm->bias.grad(), exact->bias.grad(), 0, 4e-6 * pixels);
    expect_close("d_x", x.grad(), exact_x.grad(), ulp, 4e-5 * scale);
    EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 1);
  }
  EXPECT_EQ(CountedKernels::calls().norm_pool_forward, std::ssize(shapes));
  EXPECT_EQ(CountedKernels::calls().norm_pool_backward, std::ssize(shapes));
  EXPECT_EQ(CountedKernels::calls().forks, std::ssize(shapes));
  EXPECT_EQ(CountedKernels::calls().norm_forward, 0);
}

TEST_P(FusedNormPoolTest, EitherConsumerMayBeMissing) {
  std::optional<at::Tensor> first;
  for (const bool fork : {false, true}) {
    const at::Tensor x = activations({2, 8, 6, 5}, GetParam()).requires_grad_();
    const Forked result = fused(some_norm(8), x);
    const at::Tensor dy = channels_last(noise_tensor(2, result.y.sizes(), 2), GetParam());
    (fork ? result.fork : result.y).backward(dy);
    if (!first) first = x.grad();
    EXPECT_TRUE(x.grad().equal(*first)) << fork;
  }
}

TEST_P(FusedNormPoolTest, SecondDerivativesAreAnError) {
  const at::Tensor x = activations({2, 8, 3, 3}, GetParam()).requires_grad_();
  const at::Tensor y = fused(some_norm(8), x).y;
  const at::Tensor dy = channels_last(noise_tensor(2, y.sizes(), 2), GetParam());
  EXPECT_THROW(torch::autograd::grad({y}, {x}, {dy}, /*retain_graph=*/true, /*create_graph=*/true),
               std::logic_error);
}

TEST_P(FusedNormPoolTest, OtherLayersRunSeparately) {
  const at::Tensor x = activations({2, 8, 6, 6}, GetParam());
  const auto calls = [&](bool norm_fuses, MaxPool2d pool, bool trains) {
    BatchNorm2d norm = some_norm(8);
    if (norm_fuses) norm->fuse();
    pool->fuse();
    norm->train(trains);
    pool->train(trains);
    CountedKernels::reset();
    EXPECT_EQ(norm->forward_relu_pool(x, pool).y.size(2), 3);
    return CountedKernels::calls();
  };
  EXPECT_EQ(calls(true, MaxPool2d(3, 2, 1), true), FusedCalls{.norm_pool_forward = 1});
  EXPECT_EQ(calls(false, MaxPool2d(3, 2, 1), true), FusedCalls{.max_pool_forward = 1});
  EXPECT_EQ(calls(true, MaxPool2d(2, 2, 0), true), FusedCalls{.norm_forward = 1});
  EXPECT_EQ(calls(true, MaxPool2d(3, 2, 1), false), FusedCalls{});
}

INSTANTIATE_TEST_SUITE_P(Types, FusedNormPoolTest,
                         ::testing::Values(at::kFloat, at::kHalf, at::kBFloat16),
                         [](const auto& test) { return std::string(c10::toString(test.param)); });

}  // namespace
}  // namespace precast::test
