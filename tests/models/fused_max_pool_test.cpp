// Built twice, see fused_device.h.
#include "models/detail/fused_max_pool.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/max_pool2d.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/detail/max_pool.h"
#include "tests/models/fused_device.h"
#include "tests/support/noise_tensor.h"

namespace precast::test {
namespace {

using models::detail::Forked;
using models::detail::fused_max_pool;
using models::detail::MaxPool2d;

at::Tensor pooled(const at::Tensor& x) {
  return at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
}

class FusedMaxPoolTest : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override {
    if (const std::string reason = missing_fused_device(); !reason.empty()) GTEST_SKIP() << reason;
    kernels_.emplace();
  }
  /// Values like those after a ReLU: about half of them are 0.
  [[nodiscard]] static at::Tensor activations(at::IntArrayRef shape) {
    return channels_last(noise_tensor(1, shape, 4).relu(), GetParam());
  }

 private:
  std::optional<CountedKernels> kernels_;
};

/// Small whole numbers, whose sums are exact in every type.
at::Tensor whole_numbers(const at::Tensor& like, std::uint32_t stream) {
  return channels_last((noise_tensor(stream, like.sizes(), 16)).round(), like.scalar_type());
}

TEST_P(FusedMaxPoolTest, IsTorchsMaxPool) {
  const std::vector<std::int64_t> shapes[] = {{2, 1, 1, 1},  {1, 3, 5, 7},   {2, 8, 1, 4},
                                              {3, 13, 4, 3}, {1, 24, 9, 10}, {4, 64, 2, 2}};
  for (const std::vector<std::int64_t>& shape : shapes) {
    SCOPED_TRACE(testing::PrintToString(shape));
    const at::Tensor x = activations(shape).requires_grad_();
    const at::Tensor exact = x.detach().to(at::kCPU, at::kDouble).requires_grad_();
    const Forked result = fused_max_pool(x);
    const at::Tensor expected = pooled(exact);
    EXPECT_EQ(result.y.scalar_type(), GetParam());
    EXPECT_TRUE(result.y.is_contiguous(at::MemoryFormat::ChannelsLast));
    EXPECT_TRUE(result.y.detach().to(at::kCPU, at::kDouble).equal(expected.detach()));
    const at::Tensor dy = whole_numbers(result.y, 2), d_fork = whole_numbers(result.y, 3);
    torch::autograd::backward({result.y, result.fork}, {dy, d_fork});
    expected.backward((dy + d_fork).to(at::kCPU, at::kDouble));
    EXPECT_TRUE(x.grad().to(at::kCPU, at::kDouble).equal(exact.grad()));
  }
  EXPECT_EQ(CountedKernels::calls().max_pool_backward, std::ssize(shapes));
  EXPECT_EQ(CountedKernels::calls().forks, std::ssize(shapes));
}

TEST_P(FusedMaxPoolTest, EitherConsumerMayBeMissing) {
  for (const bool fork : {false, true}) {
    const at::Tensor x = activations({2, 8, 6, 5}).requires_grad_();
    const at::Tensor exact = x.detach().to(at::kCPU, at::kDouble).requires_grad_();
    const Forked result = fused_max_pool(x);
    const at::Tensor dy = whole_numbers(result.y, 2);
    (fork ? result.fork : result.y).backward(dy);
    pooled(exact).backward(dy.to(at::kCPU, at::kDouble));
    EXPECT_TRUE(x.grad().to(at::kCPU, at::kDouble).equal(exact.grad())) << fork;
  }
}

TEST_P(FusedMaxPoolTest, SecondDerivativesAreAnError) {
  const at::Tensor x = activations({2, 8, 3, 3}).requires_grad_();
  const at::Tensor y = fused_max_pool(x).y;
  EXPECT_THROW(torch::autograd::grad({y}, {x}, {whole_numbers(y, 2)}, /*retain_graph=*/true,
                                     /*create_graph=*/true),
               std::logic_error);
}

TEST_P(FusedMaxPoolTest, TheModuleUsesItForItsWindowInTraining) {
  const auto calls = [](MaxPool2d pool, const at::Tensor& x) {
    pool->fuse();
    CountedKernels::reset();
    EXPECT_TRUE(pool->forward(x).sizes().equals(pool->forward_fork(x).fork.sizes()));
    return CountedKernels::calls().max_pool_forward;
  };
  const at::Tensor x = activations({2, 8, 6, 5});
  EXPECT_EQ(calls(MaxPool2d(3, 2, 1), x), 2);
  EXPECT_EQ(calls(MaxPool2d(3, 2, 1), x.contiguous()), 0);
  EXPECT_EQ(calls(MaxPool2d(2, 2, 0), x), 0);
  MaxPool2d evaluating(3, 2, 1);
  evaluating->eval();
  EXPECT_EQ(calls(evaluating, x), 0);
}

INSTANTIATE_TEST_SUITE_P(Types, FusedMaxPoolTest,
                         ::testing::Values(at::kFloat, at::kHalf, at::kBFloat16),
                         [](const auto& test) { return std::string(c10::toString(test.param)); });

}  // namespace
}  // namespace precast::test
