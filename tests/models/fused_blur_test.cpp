// Built twice, see fused_device.h.
#include "models/detail/fused_blur.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/detail/blur_conv.h"
#include "tests/models/fused_device.h"
#include "tests/support/noise_tensor.h"

namespace precast::test {
namespace {

using models::detail::BlurConv2d;
using models::detail::Blurred;

const std::vector<std::int64_t> kBlurShapes[] = {{2, 1, 1, 1},  {1, 3, 5, 7},   {2, 8, 1, 4},
                                                 {3, 13, 4, 3}, {1, 24, 9, 10}, {4, 64, 2, 2}};

at::Tensor filtered(const at::Tensor& x, std::int64_t stride) {
  const at::Tensor filter = at::tensor({1., 2., 1., 2., 4., 2., 1., 2., 1.}, at::kDouble) / 16.;
  const std::int64_t step[] = {stride, stride}, one[] = {1, 1};
  return at::conv2d(x, filter.view({1, 1, 3, 3}).repeat({x.size(1), 1, 1, 1}), {}, step, one, one,
                    x.size(1));
}

void expect_near(const char* what, const at::Tensor& found, const at::Tensor& expected,
                 at::ScalarType type) {
  ASSERT_EQ(found.sizes(), expected.sizes()) << what;
  const at::Tensor bound = expected.detach().abs() * (1.01 * rounding(type)) + 2e-6;
  const at::Tensor excess =
      (found.detach().to(at::kCPU, at::kDouble) - expected.detach()).abs() - bound;
  EXPECT_LE(excess.max().item<double>(), 0) << what;
}

class FusedBlurTest : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override {
    if (const std::string reason = missing_fused_device(); !reason.empty()) GTEST_SKIP() << reason;
    kernels_.emplace();
  }
  [[nodiscard]] static at::Tensor noise(std::uint32_t stream, at::IntArrayRef shape) {
    return channels_last(noise_tensor(stream, shape, 4) + 0.5, GetParam());
  }

 private:
  std::optional<CountedKernels> kernels_;
};

TEST_P(FusedBlurTest, IsTheDepthwiseConvolutionInDoublePrecision) {
  for (const std::vector<std::int64_t>& shape : kBlurShapes) {
    SCOPED_TRACE(testing::PrintToString(shape));
    const at::Tensor x = noise(1, shape).requires_grad_();
    const at::Tensor exact = x.detach().to(at::kCPU, at::kDouble).requires_grad_();
    const Blurred both = models::detail::fused_blur_both(x);
    const at::Tensor all = filtered(exact, 1), even = filtered(exact, 2);
    expect_near("all", both.all, all, GetParam());
    expect_near("even", both.even, even, GetParam());
    EXPECT_EQ(both.all.scalar_type(), GetParam());
    EXPECT_TRUE(both.even.is_contiguous(at::MemoryFormat::ChannelsLast));
    const at::Tensor d_all = noise(2, all.sizes()), d_even = noise(3, even.sizes());
    torch::autograd::backward({both.all, both.even}, {d_all, d_even});
    torch::autograd::backward({all, even},
                              {d_all.to(at::kCPU, at::kDouble), d_even.to(at::kCPU, at::kDouble)});
    expect_near("dx", x.grad(), exact.grad(), GetParam());
  }
}

TEST_P(FusedBlurTest, EitherResultMayBeUsedAlone) {
  const std::vector<std::int64_t> shape = {2, 16, 7, 5};
  const auto gradient = [&](auto use) {
    const at::Tensor x = noise(1, shape).requires_grad_();
    at::Tensor result = use(x);
    result.backward(noise(2, result.sizes()));
    return x.grad();
  };
  using models::detail::fused_blur, models::detail::fused_blur_both,
      models::detail::fused_blur_even;
  EXPECT_TRUE(gradient([](const auto& x) {
                return fused_blur_both(x).all;
              }).equal(gradient([](const auto& x) { return fused_blur(x); })));
  EXPECT_TRUE(gradient([](const auto& x) {
                return fused_blur_both(x).even;
              }).equal(gradient([](const auto& x) { return fused_blur_even(x); })));
  EXPECT_EQ(CountedKernels::calls().forks, 0);
}

TEST_P(FusedBlurTest, TakesGradientsOfAnyLayout) {
  const at::Tensor x = noise(1, {2, 16, 7, 5}).requires_grad_();
  models::detail::fused_blur(x).sum().backward();
  const at::Tensor exact = x.detach().to(at::kCPU, at::kDouble).requires_grad_();
  filtered(exact, 1).sum().backward();
  expect_near("dx", x.grad(), exact.grad(), GetParam());
}

TEST_P(FusedBlurTest, SecondDerivativesAreAnError) {
  const at::Tensor x = noise(1, {2, 8, 3, 3}).requires_grad_();
  const at::Tensor y = models::detail::fused_blur(x);
  EXPECT_THROW(torch::autograd::grad({y}, {x}, {noise(2, y.sizes())}, /*retain_graph=*/true,
                                     /*create_graph=*/true),
               std::logic_error);
}

INSTANTIATE_TEST_SUITE_P(Types, FusedBlurTest,
                         ::testing::Values(at::kFloat, at::kHalf, at::kBFloat16),
                         [](const auto& test) { return std::string(c10::toString(test.param)); });

/// Tests when the module uses the kernels and when it uses the depthwise convolution.
class FusedBlurConvTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = missing_fused_device(); !reason.empty()) GTEST_SKIP() << reason;
    kernels_.emplace();
  }
  static BlurConv2d conv(std::int64_t kernel, std::int64_t stride = 2, bool blurpool = true) {
    BlurConv2d made(torch::nn::Conv2dOptions(16, 4, kernel).stride(stride).padding(kernel / 2),
                    blurpool);
    made->to(fused_device());
    made->fuse();
    return made;
  }
  static int fused_calls(BlurConv2d conv, const at::Tensor& x) {
    CountedKernels::reset();
    static_cast<void>(conv(x));
    return CountedKernels::calls().blur_forward;
  }
  static at::Tensor images() {
    return channels_last(noise_tensor(1, {2, 16, 7, 6}, 4), at::kFloat);
  }

 private:
  std::optional<CountedKernels> kernels_;
};

TEST_F(FusedBlurConvTest, IsTheReference) {
  for (const std::int64_t kernel : {1, 3}) {
    BlurConv2d fused = conv(kernel), reference = conv(kernel);
    EXPECT_TRUE(fused->fuses_blur());
    reference->eval();
    reference->weight.set_data(fused->weight.detach());
    reference->bias.set_data(fused->bias.detach());
    EXPECT_EQ(fused_calls(reference, images()), 0);
    EXPECT_EQ(fused_calls(fused, images()), 1);
    const at::Tensor found = fused(images()), expected = reference(images());
    ASSERT_EQ(found.sizes(), expected.sizes());
    EXPECT_LE((found - expected).abs().max().item<double>(), 1e-5);
  }
}

TEST_F(FusedBlurConvTest, WhatTheKernelsCannotComputeIsLeftToTheReference) {
  EXPECT_EQ(fused_calls(conv(3), images().contiguous()), 0);
  EXPECT_FALSE(conv(1, 3)->fuses_blur());
  EXPECT_EQ(fused_calls(conv(1, 3), images()), 0);
  EXPECT_EQ(fused_calls(conv(3, 3), images()), 1);
  EXPECT_FALSE(conv(3, 2, /*blurpool=*/false)->fuses_blur());
  EXPECT_EQ(fused_calls(conv(3, 2, /*blurpool=*/false), images()), 0);
}

}  // namespace
}  // namespace precast::test
