// Built twice, see fused_device.h.
#include "models/detail/fused_dual_norm.h"

#include <ATen/TensorOperators.h>
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

/// A norm with random parameters, which depend on `stream`.
BatchNorm2d some_norm(std::int64_t channels, std::uint32_t stream) {
  const at::NoGradGuard no_grad;
  BatchNorm2d norm(channels);
  norm->weight.copy_(noise_tensor(stream, {channels}, 0.6) + 1);
  norm->bias.copy_(noise_tensor(stream + 1, {channels}, 0.6));
  norm->to(fused_device());
  return norm;
}

at::Tensor activations(at::IntArrayRef shape, std::uint32_t stream, at::ScalarType type) {
  return channels_last(noise_tensor(stream, shape, 4) + 0.5, type);
}

at::Tensor exact(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU, at::kDouble);
}

class FusedDualNormTest : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override {
    if (const std::string reason = missing_fused_device(); !reason.empty()) GTEST_SKIP() << reason;
    kernels_.emplace();
  }
  [[nodiscard]] static Forked fused(BatchNorm2d norm, const at::Tensor& x, BatchNorm2d other,
                                    const at::Tensor& shortcut) {
    norm->fuse();
    other->fuse();
    return norm->forward_relu_fork(x, shortcut, *other);
  }

 private:
  std::optional<CountedKernels> kernels_;
};

TEST_P(FusedDualNormTest, IsTheCompositionInDoublePrecision) {
  const std::vector<std::int64_t> shapes[] = {{2, 1, 1, 1},  {1, 3, 5, 7},  {2, 8, 1, 1},
                                              {3, 13, 4, 3}, {1, 24, 9, 5}, {4, 64, 2, 2}};
  for (const std::vector<std::int64_t>& shape : shapes) {
    SCOPED_TRACE(testing::PrintToString(shape));
    const std::int64_t channels = shape[1];
    const at::Tensor x = activations(shape, 1, GetParam()).requires_grad_(),
                     shortcut = activations(shape, 2, GetParam()).requires_grad_();
    BatchNorm2d norm = some_norm(channels, 3), other = some_norm(channels, 5);
    const at::Tensor exact_x = exact(x).requires_grad_(),
                     exact_shortcut = exact(shortcut).requires_grad_();
    BatchNorm2d exact_norm = some_norm(channels, 3), exact_other = some_norm(channels, 5);
    exact_norm->to(at::kCPU, at::kDouble);
    exact_other->to(at::kCPU, at::kDouble);

    const Forked result = fused(norm, x, other, shortcut);
    const at::Tensor expected =
        at::relu(exact_norm->forward(exact_x) + exact_other->forward(exact_shortcut));
    EXPECT_EQ(result.y.scalar_type(), GetParam());
    EXPECT_TRUE(result.y.is_contiguous(at::MemoryFormat::ChannelsLast));
    const at::Tensor dy = channels_last(noise_tensor(7, shape, 2) + 0.1, GetParam()),
                     d_fork = channels_last(noise_tensor(8, shape, 2), GetParam());
    torch::autograd::backward({result.y, result.fork}, {dy, d_fork});
    expected.backward(exact(dy) + exact(d_fork));

    // The tolerances allow for rounding y, the gradient of the sum and the other gradients to the
    // type, and for a small error in float32, which the norm multiplies.
    const double ulp = 1.01 * rounding(GetParam());
    const auto rows = static_cast<double>(x.numel()) / static_cast<double>(channels);
    expect_close("y", result.y, expected, ulp, 1e-5);
    const auto expect_side = [&](BatchNorm2d& found, const at::Tensor& from, BatchNorm2d& reference,
                                 const at::Tensor& exact_from) {
      const at::Tensor variance = exact_from.detach().var({0, 2, 3}, /*unbiased=*/false);
      const double scale =
          (reference->weight.detach().abs() / (variance + 1e-5).sqrt()).max().item<double>();
      expect_close("running_mean", found->running_mean, reference->running_mean, 1e-6, 2e-6);
      expect_close("running_var", found->running_var, reference->running_var, 1e-5, 1e-5);
      expect_close("d_weight", found->weight.grad(), reference->weight.grad(), 0,
                   (1e-5 + 4 * ulp) * rows);
      expect_close("d_bias", found->bias.grad(), reference->bias.grad(), 0,
                   (4e-6 + 2 * ulp) * rows);
      expect_close("d_x", from.grad(), exact_from.grad(), ulp, (4e-5 + 10 * ulp) * scale);
      EXPECT_EQ(found->num_batches_tracked.item<std::int64_t>(), 1);
    };
    expect_side(norm, x, exact_norm, exact_x);
    expect_side(other, shortcut, exact_other, exact_shortcut);
  }
  EXPECT_EQ(CountedKernels::calls(), (FusedCalls{.dual_norm_forward = int{std::size(shapes)},
                                                 .dual_norm_backward = int{std::size(shapes)},
                                                 .forks = int{std::size(shapes)}}));
}

TEST_P(FusedDualNormTest, EitherConsumerMayBeMissing) {
  std::optional<at::Tensor> first;
  for (const bool fork : {false, true}) {
    const at::Tensor x = activations({2, 8, 6, 5}, 1, GetParam()).requires_grad_();
    const at::Tensor shortcut = activations({2, 8, 6, 5}, 2, GetParam());
    const Forked result = fused(some_norm(8, 3), x, some_norm(8, 5), shortcut);
    (fork ? result.fork : result.y).backward(activations({2, 8, 6, 5}, 7, GetParam()));
    if (!first) first = x.grad();
    EXPECT_TRUE(x.grad().equal(*first)) << fork;
  }
}

TEST_P(FusedDualNormTest, SecondDerivativesAreAnError) {
  const at::Tensor x = activations({2, 8, 3, 3}, 1, GetParam()).requires_grad_();
  const at::Tensor y = fused(some_norm(8, 3), x, some_norm(8, 5), x).y;
  EXPECT_THROW(torch::autograd::grad({y}, {x}, {activations({2, 8, 3, 3}, 7, GetParam())},
                                     /*retain_graph=*/true, /*create_graph=*/true),
               std::logic_error);
}

TEST_P(FusedDualNormTest, OtherNormsRunSeparately) {
  const at::Tensor x = activations({2, 8, 6, 6}, 1, GetParam());
  const auto calls = [&](bool fuses, bool other_fuses, bool trains, const at::Tensor& shortcut) {
    BatchNorm2d norm = some_norm(8, 3), other = some_norm(8, 5);
    if (fuses) norm->fuse();
    if (other_fuses) other->fuse();
    norm->train(trains);
    other->train(trains);
    CountedKernels::reset();
    EXPECT_EQ(norm->forward_relu_fork(x, shortcut, *other).y.sizes(), x.sizes());
    return CountedKernels::calls();
  };
  EXPECT_EQ(calls(true, true, true, x), FusedCalls{.dual_norm_forward = 1});
  EXPECT_EQ(calls(true, false, true, x), FusedCalls{.norm_forward = 1});
  EXPECT_EQ(calls(false, true, true, x), FusedCalls{.norm_forward = 1});
  EXPECT_EQ(calls(true, true, false, x), FusedCalls{});
  const at::ScalarType other_type = GetParam() == at::kFloat ? at::kHalf : at::kFloat;
  EXPECT_EQ(calls(true, true, true, activations({2, 8, 6, 6}, 1, other_type)),
            FusedCalls{.norm_forward = 2});
  const at::Tensor nchw = x.contiguous(at::MemoryFormat::Contiguous);
  EXPECT_EQ(calls(true, true, true, nchw), FusedCalls{.norm_forward = 1});
}

INSTANTIATE_TEST_SUITE_P(Types, FusedDualNormTest,
                         ::testing::Values(at::kFloat, at::kHalf, at::kBFloat16),
                         [](const auto& test) { return std::string(c10::toString(test.param)); });

}  // namespace
}  // namespace precast::test
