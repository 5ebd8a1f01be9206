#include "models/detail/fused_stem.h"

#include <ATen/Context.h>
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

class FusedStemTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = missing_fused_device(); !reason.empty()) GTEST_SKIP() << reason;
    tf32_before_ = at::globalContext().allowTF32CuDNN();
    at::globalContext().setAllowTF32CuDNN(false);
    kernels_.emplace();
  }
  void TearDown() override {
    if (kernels_) at::globalContext().setAllowTF32CuDNN(tf32_before_);
  }
  static at::Tensor images(at::IntArrayRef shape, at::ScalarType type = at::kFloat) {
    return channels_last(noise_tensor(1, shape, 4), type);
  }

 private:
  bool tf32_before_ = false;
  std::optional<CountedKernels> kernels_;
};

/// A convolution that uses the kernel in training, on the device of the kernels.
BlurConv2d conv_of(const torch::nn::Conv2dOptions& options) {
  BlurConv2d conv(options, /*blurpool=*/true);
  conv->fuse();
  conv->to(fused_device());
  return conv;
}

torch::nn::Conv2dOptions stem() {
  return torch::nn::Conv2dOptions(3, 8, 7).stride(2).padding(3).bias(false);
}

TEST_F(FusedStemTest, IsTheConvolutionInDoublePrecision) {
  for (const std::int64_t side : {1, 4, 9}) {
    SCOPED_TRACE(side);
    const at::Tensor x = images({2, 3, side, side});
    BlurConv2d conv = conv_of(stem());
    const at::Tensor wide = conv->weight.detach().to(at::kCPU, at::kDouble).requires_grad_();
    const at::Tensor found = conv(x);
    const at::Tensor expected =
        at::conv2d(x.to(at::kCPU, at::kDouble), wide, /*bias=*/{}, /*stride=*/2, /*padding=*/3);
    ASSERT_EQ(found.sizes(), expected.sizes());
    const at::Tensor dy = noise_tensor(3, expected.sizes(), 1);
    found.backward(dy.to(fused_device()));
    expected.backward(dy.to(at::kDouble));
    const auto difference = [](const at::Tensor& a, const at::Tensor& b) {
      return (a.detach().to(at::kCPU, at::kDouble) - b.detach()).abs().max().item<double>();
    };
    EXPECT_LE(difference(found, expected), 1e-5);
    EXPECT_LE(difference(conv->weight.grad(), wide.grad()), 1e-4);
    EXPECT_EQ(CountedKernels::calls().stem_input, 1);
    CountedKernels::reset();
  }
}

/// The fourth channel contains zeros, which change no sum, even with a bias, a squeeze-excite and
/// 16-bit types.
TEST_F(FusedStemTest, IsTheLayerWithoutTheKernel) {
  for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    SCOPED_TRACE(c10::toString(type));
    BlurConv2d plain(stem().bias(true), /*blurpool=*/true);
    plain->add_squeeze_excite(4);
    plain->to(fused_device(), type);
    const at::Tensor x = images({2, 3, 8, 6}, type);
    const at::Tensor expected = plain(x).to(at::kDouble);
    plain->fuse();
    const at::Tensor found = plain(x).to(at::kDouble);
    EXPECT_EQ(CountedKernels::calls().stem_input, 1);
    // In float32, oneDNN's convolutions for SSE4.1 add up four channels in another order than
    // three: the results differ by up to 4.5 roundings.
    const double roundings = type == at::kFloat ? 8 : 4;
    EXPECT_LE((found - expected).abs().max().item<double>(),
              roundings * rounding(type) * expected.abs().max().item<double>());
    CountedKernels::reset();
  }
}

TEST_F(FusedStemTest, IsUsedInTrainingForImagesWithThreeChannels) {
  const auto calls = [](BlurConv2d conv, const at::Tensor& x) {
    CountedKernels::reset();
    static_cast<void>(conv(x));
    return CountedKernels::calls().stem_input;
  };
  const at::Tensor x = images({2, 3, 8, 8});
  EXPECT_EQ(calls(conv_of(stem()), x), 1);
  EXPECT_EQ(calls(conv_of(torch::nn::Conv2dOptions(3, 8, 3)), x), 1);
  EXPECT_EQ(calls(conv_of(torch::nn::Conv2dOptions(3, 9, 3).groups(3)), x), 0);
  EXPECT_EQ(calls(conv_of(stem()), x.clone().requires_grad_()), 0);
  BlurConv2d evaluated = conv_of(stem());
  evaluated->eval();
  EXPECT_EQ(calls(evaluated, x), 0);
}

TEST_F(FusedStemTest, OtherImagesAreLeftToTheReference) {
  EXPECT_TRUE(can_fuse_stem(images({1, 3, 2, 3}, at::kHalf)));
  EXPECT_FALSE(can_fuse_stem(images({1, 4, 2, 2})));
  EXPECT_FALSE(can_fuse_stem(images({1, 1, 2, 2})));
  EXPECT_FALSE(can_fuse_stem(images({2, 3, 4, 4}).contiguous()));
  EXPECT_FALSE(can_fuse_stem(images({2, 3, 4, 4}, at::kDouble)));
}

}  // namespace
}  // namespace precast::test
