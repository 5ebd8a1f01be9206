#include "models/detail/fused_stem.h"

#include <ATen/ops/conv2d.h>
#include <gtest/gtest.h>

#include <optional>

#include "models/detail/blur_conv.h"
#include "tests/models/fused_device.h"
#include "tests/support/noise_tensor.h"

namespace precast::test {
namespace {

using models::detail::BlurConv2d;
using models::detail::can_fuse_stem;
using models::detail::fused_stem;

class FusedStemTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = missing_fused_device(); !reason.empty()) GTEST_SKIP() << reason;
    kernels_.emplace();
  }
  static at::Tensor images(at::IntArrayRef shape, at::ScalarType type = at::kFloat) {
    return channels_last(noise_tensor(1, shape, 4), type);
  }

 private:
  std::optional<CountedKernels> kernels_;
};

TEST_F(FusedStemTest, IsTheConvolutionInDoublePrecision) {
  for (const std::int64_t channels : {1, 3, 4}) {
    for (const auto& [height, width] : {std::pair{2, 2}, std::pair{4, 10}, std::pair{12, 8}}) {
      SCOPED_TRACE(testing::PrintToString(std::vector{channels, std::int64_t{height}}));
      const at::Tensor x = images({2, channels, height, width});
      at::Tensor weight = noise_tensor(2, {5, channels, 7, 7}, 1).to(fused_device());
      at::Tensor wide = weight.to(at::kCPU, at::kDouble);
      weight.requires_grad_();
      wide.requires_grad_();
      const at::Tensor found = fused_stem(x, weight);
      const at::Tensor expected =
          at::conv2d(x.to(at::kCPU, at::kDouble), wide, /*bias=*/{}, /*stride=*/2, /*padding=*/3);
      ASSERT_EQ(found.sizes(), expected.sizes());
      const at::Tensor dy = noise_tensor(3, expected.sizes(), 1);
      found.backward(dy.to(fused_device()));
      expected.backward(dy.to(at::kDouble));
      const auto difference = [](const at::Tensor& a, const at::Tensor& b) {
        return (a.detach().to(at::kCPU, at::kDouble) - b.detach()).abs().max().item<double>();
      };
      EXPECT_LE(difference(found, expected), 2e-4);
      EXPECT_LE(difference(weight.grad(), wide.grad()), 2e-4);
    }
  }
}

TEST_F(FusedStemTest, IsUsedInTrainingForTheFirstLayerOfAResNetOnly) {
  const auto calls = [](const torch::nn::Conv2dOptions& options, const at::Tensor& x,
                        bool training) {
    BlurConv2d conv(options, /*blurpool=*/true);
    conv->fuse();
    conv->to(fused_device());
    conv->train(training);
    CountedKernels::reset();
    static_cast<void>(conv(x));
    return CountedKernels::calls().stem_input;
  };
  const auto stem = torch::nn::Conv2dOptions(3, 8, 7).stride(2).padding(3).bias(false);
  const at::Tensor x = images({2, 3, 8, 8});
  EXPECT_EQ(calls(stem, x, true), 1);
  EXPECT_EQ(calls(stem, x, false), 0);
  EXPECT_EQ(calls(stem, images({2, 3, 9, 8}), true), 0);
  EXPECT_EQ(calls(stem, x.clone().requires_grad_(), true), 0);
  auto other = stem;
  EXPECT_EQ(calls(other.padding(2), x, true), 0);
  other = stem;
  EXPECT_EQ(calls(other.bias(true), x, true), 0);
  other = stem;
  EXPECT_EQ(calls(other.stride(1), x, true), 0);
}

TEST_F(FusedStemTest, OtherImagesAreLeftToTheReference) {
  EXPECT_TRUE(can_fuse_stem(images({1, 3, 2, 2}, at::kHalf)));
  EXPECT_FALSE(can_fuse_stem(images({1, 5, 2, 2})));
  EXPECT_FALSE(can_fuse_stem(images({1, 3, 2, 3})));
  EXPECT_FALSE(can_fuse_stem(images({2, 3, 4, 4}).contiguous()));
  EXPECT_FALSE(can_fuse_stem(images({2, 3, 4, 4}, at::kDouble)));
}

}  // namespace
}  // namespace precast::test
