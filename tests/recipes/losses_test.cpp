#include <ATen/ops/allclose.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "recipes/register.h"
#include "tests/recipes/recipe_golden.h"
#include "tests/support/noise_tensor.h"
#include "tests/support/part_spec.h"

namespace precast::test {
namespace {

std::unique_ptr<Loss> cross_entropy(double label_smoothing) {
  LossRegistry registry("loss");
  recipes::register_losses(registry);
  return registry.make(
      part_spec("cross_entropy", fmt::format("{{label_smoothing: {}}}", label_smoothing)));
}

TEST(CrossEntropyTest, IsTorchsForIndicesAndProbabilities) {
  const at::Tensor logits = noise_tensor(1, {6, 10}, 8);
  const at::Tensor labels = at::tensor({0, 9, 3, 3, 5, 7}, at::kLong);
  const at::Tensor shares = at::softmax(noise_tensor(2, {6, 10}, 4), 1);
  for (const auto& [smoothing, golden] : recipe_golden()["loss"].items()) {
    const auto loss = cross_entropy(std::stod(smoothing));
    EXPECT_NEAR((*loss)(logits, make_batch({}, labels)).item<double>(),
                golden["indices"].get<double>(), 1e-6);
    EXPECT_NEAR((*loss)(logits, make_batch({}, shares)).item<double>(),
                golden["probabilities"].get<double>(), 1e-6);
  }
}

TEST(CrossEntropyTest, IsComputedInFloat32ForHalfLogits) {
  const at::Tensor logits = noise_tensor(1, {6, 10}, 8).to(at::kHalf);
  const at::Tensor labels = at::tensor({0, 9, 3, 3, 5, 7}, at::kLong);
  const at::Tensor loss = (*cross_entropy(0.1))(logits, make_batch({}, labels));
  EXPECT_EQ(loss.scalar_type(), at::kFloat);
  EXPECT_EQ(loss.item<float>(),
            (*cross_entropy(0.1))(logits.to(at::kFloat), make_batch({}, labels)).item<float>());
}

TEST(CrossEntropyTest, RefusesLabelsItCannotRead) {
  const at::Tensor logits = noise_tensor(1, {6, 10});
  const auto loss = cross_entropy(0);
  EXPECT_THROW((void)(*loss)(logits, make_batch({}, noise_tensor(2, {6}))), std::logic_error);
  EXPECT_THROW((void)(*loss)(logits, make_batch({}, at::tensor({1, 2}, at::kLong))),
               std::logic_error);
}

TEST(CrossEntropyTest, RefusesSmoothingOutsideItsRange) {
  EXPECT_THROW((void)cross_entropy(1), ConfigError);
  EXPECT_THROW((void)cross_entropy(-0.1), ConfigError);
}

std::unique_ptr<Loss> make_loss(const std::string& name, const std::string& options = "") {
  LossRegistry registry("loss");
  recipes::register_losses(registry);
  return registry.make(part_spec(name, options));
}

TEST(BceTest, IsTimmsForIndicesAndForMixedLabels) {
  const nlohmann::json& golden = method_golden()["bce"];
  const at::Tensor logits = noise_tensor(1, {6, 10}, 8);
  const at::Tensor labels = at::tensor({0, 9, 3, 3, 5, 7}, at::kLong);
  const at::Tensor one_hot = at::zeros({6, 10}).scatter_(1, labels.unsqueeze(1), 1.0);
  const at::Tensor mixed = at::lerp(one_hot.flip(0), one_hot, golden["mixed_lambda"].get<double>());
  for (const auto& item : golden["cases"]) {
    const auto loss = make_loss("bce", item["options"].dump());
    EXPECT_NEAR((*loss)(logits, make_batch({}, labels)).item<double>(),
                item["indices"].get<double>(), 2e-6);
    EXPECT_NEAR((*loss)(logits, make_batch({}, mixed)).item<double>(), item["mixed"].get<double>(),
                2e-6);
  }
}

TEST(BceTest, SumOverClassesIsComposers) {
  const auto loss = make_loss("bce", "{sum_classes: true}");
  const at::Tensor labels = at::tensor({0, 9, 3, 3, 5, 7}, at::kLong);
  EXPECT_NEAR((*loss)(noise_tensor(1, {6, 10}, 8), make_batch({}, labels)).item<double>(),
              method_golden()["bce"]["composer"].get<double>(), 1e-5);
}

TEST(BceTest, RefusesWhatItCannotRead) {
  EXPECT_THROW((void)make_loss("bce", "{label_smoothing: 1}"), ConfigError);
  EXPECT_THROW((void)make_loss("bce", "{target_threshold: 1}"), ConfigError);
  EXPECT_THROW(
      (void)(*make_loss("bce"))(noise_tensor(1, {6, 10}), make_batch({}, noise_tensor(2, {6}))),
      std::logic_error);
}

/// A loss that implements only mean().
class Plain final : public TargetLoss {
 public:
  at::Tensor mean(const at::Tensor& logits, const at::Tensor& labels) const override {
    return (*cross_entropy(0.1))(logits, make_batch({}, labels));
  }
};

TEST(LossTest, SamplesHaveTheLossThatABatchOfThemHas) {
  const at::Tensor logits = noise_tensor(1, {6, 10}, 8);
  const at::Tensor labels = at::tensor({0, 9, 3, 3, 5, 7}, at::kLong);
  const Plain plain;
  const auto whole = cross_entropy(0.1);
  EXPECT_TRUE(at::allclose(plain.per_sample(logits, make_batch({}, labels)),
                           whole->per_sample(logits, make_batch({}, labels)), 1e-5));
  const PartSpec specs[] = {part_spec("cross_entropy", "{label_smoothing: 0.1}"),
                            part_spec("bce", "{label_smoothing: 0.1}"),
                            part_spec("bce", "{label_smoothing: 0.1, sum_classes: true}")};
  for (const PartSpec& spec : specs) {
    const auto loss = make_loss(spec.name, spec.options.flow());
    const at::Tensor each = loss->per_sample(logits, make_batch({}, labels));
    EXPECT_EQ(each.sizes(), at::IntArrayRef({6}));
    EXPECT_TRUE(at::allclose(each.mean(), (*loss)(logits, make_batch({}, labels)), 1e-5))
        << spec.options.flow();
  }
}

}  // namespace
}  // namespace precast::test
