#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "framework/api/method.h"
#include "framework/api/model.h"
#include "framework/api/run_facts.h"
#include "tests/recipes/make_method.h"
#include "tests/recipes/recipe_golden.h"

namespace precast::test {
namespace {

/// Parameters with resnet18's names, one number each.
class NamesModel final : public ImageModel {
 public:
  NamesModel() {
    for (const auto& name : method_golden()["layer_freezing"]["parameters"])
      parameters_.push_back({name.get<std::string>(), at::zeros({1}).requires_grad_(true)});
  }
  [[nodiscard]] at::Tensor classify(const at::Tensor& images) override { return images; }
  [[nodiscard]] std::vector<NamedTensor> parameters() const override { return parameters_; }
  [[nodiscard]] std::vector<NamedTensor> state() const override { return parameters_; }
  void train(bool) override {}
  void to(at::Device, bool) override {}

  /// Indices of the parameters that get no gradient in a backward pass, or whose gradient was
  /// removed.
  std::vector<std::int64_t> without_gradient(Method& method) {
    std::vector<std::int64_t> positions;
    for (const NamedTensor& parameter : parameters_) {
      if (parameter.tensor.requires_grad()) parameter.tensor.mutable_grad() = at::ones({1});
    }
    method.on_backward(*this);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!parameters_[i].tensor.grad().defined())
        positions.push_back(static_cast<std::int64_t>(i));
    }
    return positions;
  }

 private:
  std::vector<NamedTensor> parameters_;
};

std::unique_ptr<Method> freezing(const nlohmann::json& golden, int world) {
  const nlohmann::json options = {{"freeze_start", golden["freeze_start"]},
                                  {"freeze_level", golden["freeze_level"]}};
  auto method = make_method("layer_freezing", options.dump());
  method->on_run(
      {.world = world, .epochs = golden["epochs"].get<std::int64_t>(), .steps_per_epoch = 1});
  return method;
}

class LayerFreezingTest : public ::testing::TestWithParam<int> {};

TEST_P(LayerFreezingTest, FreezesComposersLayersInEveryEpoch) {
  for (const auto& golden : method_golden()["layer_freezing"]["cases"]) {
    NamesModel model;
    const auto method = freezing(golden, GetParam());
    for (std::size_t epoch = 0; epoch < golden["frozen"].size(); ++epoch) {
      method->on_epoch_begin(static_cast<std::int64_t>(epoch), model);
      EXPECT_EQ(model.without_gradient(*method),
                golden["frozen"][epoch].get<std::vector<std::int64_t>>())
          << epoch;
    }
    // Back to epoch 0, as when a checkpoint is restored.
    method->on_epoch_begin(0, model);
    EXPECT_TRUE(model.without_gradient(*method).empty());
  }
}

TEST_P(LayerFreezingTest, AModelWhoseLastLayersAreFrozenKeepsATrainableOne) {
  NamesModel model;
  const std::size_t count = model.parameters().size(), last_trained = count / 2;
  for (std::size_t i = last_trained + 1; i < count; ++i)
    model.parameters()[i].tensor.requires_grad_(false);
  const auto method = make_method("layer_freezing", "{freeze_start: 0, freeze_level: 1}");
  constexpr std::int64_t kEpochs = 1000;
  method->on_run({.world = GetParam(), .epochs = kEpochs, .steps_per_epoch = 1});
  method->on_epoch_begin(kEpochs - 1, model);
  const auto frozen = model.without_gradient(*method);
  EXPECT_LT(frozen.size(), count);
  EXPECT_EQ(std::ranges::count(frozen, static_cast<std::int64_t>(last_trained)), 0);
}

INSTANTIATE_TEST_SUITE_P(Ranks, LayerFreezingTest, ::testing::Values(1, 2));

TEST(LayerFreezing, DoesNotUnfreezeWhatWasFrozenBefore) {
  NamesModel model;
  model.parameters().front().tensor.requires_grad_(false);
  const auto& golden = method_golden()["layer_freezing"]["cases"][0];
  const auto method = freezing(golden, 1);
  method->on_epoch_begin(9, model);
  method->on_epoch_begin(0, model);
  EXPECT_EQ(model.without_gradient(*method), std::vector<std::int64_t>{0});
}

}  // namespace
}  // namespace precast::test
