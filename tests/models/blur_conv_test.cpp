#include "models/detail/blur_conv.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "tests/support/noise_tensor.h"

namespace precast::test {
namespace {

using models::detail::BlurConv2d;
using torch::nn::Conv2dOptions;

/// A pixel of the blurred image [C, H, W]; pixels outside the image are 0. Written out, so that it
/// shares no code with BlurConv2d.
double blurred(const at::Tensor& image, std::int64_t channel, std::int64_t row, std::int64_t col) {
  constexpr double kTaps[] = {0.25, 0.5, 0.25};
  double sum = 0;
  for (std::int64_t y = 0; y < 3; ++y) {
    for (std::int64_t x = 0; x < 3; ++x) {
      const std::int64_t r = row + y - 1;
      const std::int64_t c = col + x - 1;
      if (r < 0 || c < 0 || r >= image.size(1) || c >= image.size(2)) continue;
      sum += kTaps[y] * kTaps[x] * image[channel][r][c].item<double>();
    }
  }
  return sum;
}

at::Tensor blurred(const at::Tensor& images) {
  at::Tensor result = at::empty_like(images);
  for (std::int64_t n = 0; n < images.size(0); ++n) {
    for (std::int64_t c = 0; c < images.size(1); ++c) {
      for (std::int64_t y = 0; y < images.size(2); ++y) {
        for (std::int64_t x = 0; x < images.size(3); ++x)
          result[n][c][y][x] = blurred(images[n], c, y, x);
      }
    }
  }
  return result;
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

/// The convolution alone, on an image blurred by hand.
at::Tensor reference(const Conv2dOptions& options, const at::Tensor& weight,
                     const at::Tensor& images) {
  torch::nn::Conv2d plain(options);
  plain->weight.set_data(weight.detach());
  return plain->forward(blurred(images));
}

TEST(BlurConvTest, BlursBeforeAStridedConvolution) {
  const at::NoGradGuard no_grad;
  for (const std::int64_t side : {7, 8}) {
    const at::Tensor images = noise_tensor(1, {2, 16, side, side + 1});
    for (const std::int64_t kernel : {1, 3}) {
      const auto options =
          Conv2dOptions(16, 4, kernel).stride(2).padding(kernel / 2).groups(2).bias(false);
      BlurConv2d conv(options, true);
      const at::Tensor expected = reference(options, conv->weight, images);
      const at::Tensor actual = conv->forward(images);
      ASSERT_EQ(actual.sizes(), expected.sizes());
      EXPECT_LE(largest_difference(actual, expected), 1e-5) << kernel << " x " << kernel;
    }
  }
}

TEST(BlurConvTest, LeavesOtherConvolutionsAlone) {
  const at::NoGradGuard no_grad;
  const auto unchanged = [](std::int64_t channels, std::int64_t stride, bool blurpool) {
    const at::Tensor images = noise_tensor(1, {1, channels, 8, 8});
    BlurConv2d conv(Conv2dOptions(channels, 4, 3).stride(stride).padding(1), blurpool);
    return at::equal(conv->forward(images), conv->torch::nn::Conv2dImpl::forward(images));
  };
  EXPECT_TRUE(unchanged(16, 2, false)) << "without BlurPool";
  EXPECT_TRUE(unchanged(16, 1, true)) << "no stride";
  EXPECT_TRUE(unchanged(15, 2, true)) << "few channels";
  EXPECT_FALSE(unchanged(16, 2, true));
}

TEST(BlurConvTest, TheFilterIsNoState) {
  BlurConv2d conv(Conv2dOptions(16, 4, 3).stride(2).bias(false), true);
  (void)conv->forward(noise_tensor(1, {1, 16, 8, 8}));
  EXPECT_EQ(conv->named_parameters().keys(), std::vector<std::string>{"weight"});
  EXPECT_TRUE(conv->named_buffers().is_empty());
}

TEST(BlurConvTest, TrainsAfterAnEvaluationInInferenceMode) {
  BlurConv2d conv(Conv2dOptions(16, 4, 3).stride(2).bias(false), true);
  at::Tensor images = noise_tensor(1, {1, 16, 8, 8});
  {
    const c10::InferenceMode evaluating;
    (void)conv->forward(noise_tensor(1, {1, 16, 8, 8}));
  }
  images.requires_grad_(true);
  conv->forward(images).sum().backward();
  EXPECT_GT(images.grad().abs().sum().item<double>(), 0);
}

TEST(BlurConvTest, FollowsTheTypeOfItsInput) {
  const at::NoGradGuard no_grad;
  BlurConv2d conv(Conv2dOptions(16, 4, 3).stride(2).padding(1).bias(false), true);
  const at::Tensor images = noise_tensor(1, {1, 16, 8, 8});
  const at::Tensor single = conv->forward(images);
  conv->to(at::kDouble);
  const at::Tensor twice = conv->forward(images.to(at::kDouble));
  EXPECT_EQ(twice.scalar_type(), at::kDouble);
  EXPECT_LE(largest_difference(single.to(at::kDouble), twice), 1e-5);
}

}  // namespace
}  // namespace precast::test
