#include "framework/engine/precision.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <limits>

namespace precast::engine {
namespace {

TEST(AutocastScopeTest, CastsProductsWhileItLives) {
  const at::Tensor a = at::ones({4, 4});
  {
    const AutocastScope scope(at::kCPU, Precision::bf16);
    EXPECT_EQ(at::matmul(a, a).scalar_type(), at::kBFloat16);
  }
  EXPECT_EQ(at::matmul(a, a).scalar_type(), at::kFloat);
  const AutocastScope none(at::kCPU, Precision::fp32);
  EXPECT_EQ(at::matmul(a, a).scalar_type(), at::kFloat);
}

TEST(GradScalerTest, UnscalesGradientsAndFindsOverflow) {
  GradScaler scaler(at::kCPU);
  const at::Tensor scaled = scaler.scale(at::full({}, 3.0F));
  EXPECT_EQ(scaled.item<float>(), 3 * 65536.0F);
  std::vector<at::Tensor> gradients = {at::full({2}, 65536.0F), at::full({3}, 131072.0F)};
  EXPECT_EQ(scaler.unscale(gradients).item<float>(), 0);
  EXPECT_EQ(gradients[0][0].item<float>(), 1);
  EXPECT_EQ(gradients[1][2].item<float>(), 2);
  gradients[1][0] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(scaler.unscale(gradients).item<float>(), 1);
}

TEST(GradScalerTest, HalvesTheScaleAfterOverflowAndDoublesItAfterManyGoodSteps) {
  GradScaler scaler(at::kCPU);
  const at::Tensor one = at::full({}, 1.0F);
  scaler.update(at::full({}, 1.0F));
  EXPECT_EQ(scaler.scale(one).item<float>(), 32768.0F);
  for (int step = 0; step < 2000; ++step) scaler.update(at::full({}, 0.0F));
  EXPECT_EQ(scaler.scale(one).item<float>(), 65536.0F);
}

}  // namespace
}  // namespace precast::engine
