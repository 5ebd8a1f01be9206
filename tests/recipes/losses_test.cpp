#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "recipes/register.h"
#include "tests/recipes/recipe_golden.h"
#include "tests/support/noise_tensor.h"

namespace precast::test {
namespace {

std::unique_ptr<Loss> cross_entropy(double label_smoothing) {
  LossRegistry registry("loss");
  recipes::register_losses(registry);
  return registry.create("cross_entropy", LossOptions{.label_smoothing = label_smoothing});
}

TEST(CrossEntropyTest, IsTorchsForIndicesAndProbabilities) {
  const at::Tensor logits = noise_tensor(1, {6, 10}, 8);
  const at::Tensor labels = at::tensor({0, 9, 3, 3, 5, 7}, at::kLong);
  const at::Tensor shares = at::softmax(noise_tensor(2, {6, 10}, 4), 1);
  for (const auto& [smoothing, golden] : recipe_golden()["loss"].items()) {
    const auto loss = cross_entropy(std::stod(smoothing));
    EXPECT_NEAR((*loss)(logits, labels).item<double>(), golden["indices"].get<double>(), 1e-6);
    EXPECT_NEAR((*loss)(logits, shares).item<double>(), golden["probabilities"].get<double>(),
                1e-6);
  }
}

TEST(CrossEntropyTest, IsComputedInFloat32ForHalfLogits) {
  const at::Tensor logits = noise_tensor(1, {6, 10}, 8).to(at::kHalf);
  const at::Tensor labels = at::tensor({0, 9, 3, 3, 5, 7}, at::kLong);
  const at::Tensor loss = (*cross_entropy(0.1))(logits, labels);
  EXPECT_EQ(loss.scalar_type(), at::kFloat);
  EXPECT_EQ(loss.item<float>(), (*cross_entropy(0.1))(logits.to(at::kFloat), labels).item<float>());
}

TEST(CrossEntropyTest, RefusesLabelsItCannotRead) {
  const at::Tensor logits = noise_tensor(1, {6, 10});
  const auto loss = cross_entropy(0);
  EXPECT_THROW((void)(*loss)(logits, noise_tensor(2, {6})), std::logic_error);
  EXPECT_THROW((void)(*loss)(logits, at::tensor({1, 2}, at::kLong)), std::logic_error);
}

TEST(CrossEntropyTest, RefusesSmoothingOutsideItsRange) {
  EXPECT_THROW((void)cross_entropy(1), ConfigError);
  EXPECT_THROW((void)cross_entropy(-0.1), ConfigError);
}

}  // namespace
}  // namespace precast::test
