// Tests of all optimisers; those of sgd alone are in sgd_test.cpp.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/scalar_tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ostream>
#include <set>

#include "framework/core/error.h"
#include "recipes/register.h"
#include "tests/recipes/recipe_golden.h"
#include "tests/recipes/saved_state.h"
#include "tests/recipes/toy_model.h"
#include "tests/support/part_spec.h"

namespace precast::test {
namespace {

std::unique_ptr<Optimizer> make(const std::string& name, const Model& model, double peak_lr = 1,
                                const std::string& options = "") {
  OptimizerRegistry registry("optimizer");
  recipes::register_optimizers(registry);
  return registry.make(part_spec(name, options), {model.parameters(), peak_lr});
}

struct Case {
  std::string label;
  std::string optimizer;
  double peak_lr;
  std::string options;
};

void PrintTo(const Case& shown, std::ostream* out) {
  *out << shown.label;
}

std::vector<Case> golden_cases() {
  std::vector<Case> cases;
  for (const auto& [label, golden] : optimizer_golden()["cases"].items()) {
    nlohmann::json given = golden["options"];
    const double peak_lr = given["peak_lr"];
    given.erase("peak_lr");
    cases.push_back({label, golden["optimizer"], peak_lr, given.dump()});
  }
  return cases;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases = golden_cases();
  cases.push_back({"sgd", "sgd", 0.2, "{weight_decay: 0.05}"});
  cases.push_back({"fused_sgd", "sgd", 0.2, "{weight_decay: 0.05, kernels: fused}"});
  return cases;
}

const auto kLabel = [](const auto& test) { return test.param.label; };

/// Steps with the golden's gradients and rates.
class OptimizerTest : public ::testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] static std::unique_ptr<Optimizer> make_for(const Model& model) {
    return make(GetParam().optimizer, model, GetParam().peak_lr, GetParam().options);
  }
  static void step(ToyModel& model, Optimizer& optimizer, std::uint32_t step,
                   const std::optional<Optimizer::Scaled>& scaled = std::nullopt) {
    model.set_gradients(step);
    optimizer.step(GetParam().peak_lr * (kSteps - step) / kSteps, scaled);
  }
  static void expect_golden(const Model& model) {
    expect_near(flat(values_of(model.parameters())),
                optimizer_golden()["cases"][GetParam().label]["parameters"], 5e-6);
  }

  static constexpr std::uint32_t kSteps = 50;
};

class OptimizerGoldenTest : public OptimizerTest {};

TEST_P(OptimizerGoldenTest, FiftyStepsAreThePeers) {
  ASSERT_EQ(optimizer_golden()["steps"], kSteps);
  ToyModel model;
  const auto optimizer = make_for(model);
  for (std::uint32_t i = 0; i < kSteps; ++i) step(model, *optimizer, i);
  expect_golden(model);
}

TEST_P(OptimizerGoldenTest, ChannelsLastWeightsTakeContiguousGradients) {
  ToyModel model;
  model.to(at::kCPU, /*channels_last=*/true);
  const auto optimizer = make_for(model);
  for (std::uint32_t i = 0; i < kSteps; ++i) step(model, *optimizer, i);
  expect_golden(model);
  EXPECT_FALSE(model.parameters().front().tensor.is_contiguous());
}

TEST_P(OptimizerGoldenTest, StepsWithFoundInfAreAsIfTheyHadNotBeen) {
  ToyModel model;
  const auto optimizer = make_for(model);
  for (std::uint32_t i = 0; i < kSteps; ++i) {
    if (i % 10 == 0) {
      model.set_gradients(99);
      model.parameters()[0].tensor.mutable_grad().fill_(std::numeric_limits<float>::infinity());
      model.parameters()[5].tensor.mutable_grad().fill_(std::numeric_limits<float>::quiet_NaN());
      optimizer->step(1, Optimizer::Scaled{at::scalar_tensor(1.F)});
    }
    step(model, *optimizer, i, Optimizer::Scaled{at::scalar_tensor(0.F)});
  }
  expect_golden(model);
}

INSTANTIATE_TEST_SUITE_P(Golden, OptimizerGoldenTest, ::testing::ValuesIn(golden_cases()), kLabel);

TEST_P(OptimizerTest, FoundInfChangesNeitherWeightsNorState) {
  ToyModel model;
  const auto optimizer = make_for(model);
  for (std::uint32_t i = 0; i < 3; ++i) {
    const std::vector<double> weights = flat(values_of(model.parameters()));
    const SavedState state(*optimizer);
    model.set_gradients(99);
    model.parameters()[i].tensor.mutable_grad().fill_(std::numeric_limits<float>::infinity());
    optimizer->step(1, Optimizer::Scaled{at::scalar_tensor(1.F)});
    EXPECT_EQ(flat(values_of(model.parameters())), weights) << i;
    EXPECT_TRUE(SavedState(*optimizer) == state) << i;
    step(model, *optimizer, i);
    EXPECT_FALSE(SavedState(*optimizer) == state) << "a step must change the state";
  }
}

TEST_P(OptimizerTest, ARestoredStateContinuesBitForBit) {
  ToyModel whole;
  const auto uninterrupted = make_for(whole);
  for (std::uint32_t i = 0; i < 20; ++i) step(whole, *uninterrupted, i);

  ToyModel first;
  const auto before = make_for(first);
  for (std::uint32_t i = 0; i < 10; ++i) step(first, *before, i);
  ToyModel second;
  {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < second.parameters().size(); ++i)
      second.parameters()[i].tensor.copy_(first.parameters()[i].tensor);
  }
  const auto after = make_for(second);
  SavedState(*before).restore_into(*after);
  for (std::uint32_t i = 10; i < 20; ++i) step(second, *after, i);

  EXPECT_EQ(flat(values_of(second.parameters())), flat(values_of(whole.parameters())));
  EXPECT_TRUE(SavedState(*after) == SavedState(*uninterrupted));
}

TEST_P(OptimizerTest, ARateInATensorGivesTheSameUpdates) {
  for (const bool scaled : {false, true}) {
    SCOPED_TRACE(scaled);
    ToyModel by_number, by_tensor;
    const auto expected = make_for(by_number);
    const auto found = make_for(by_tensor);
    ASSERT_TRUE(found->takes_lr_tensor());
    const at::Tensor lr = at::scalar_tensor(0.F);
    for (std::uint32_t i = 0; i < 10; ++i) {
      std::optional<Optimizer::Scaled> flag;
      if (scaled) flag = Optimizer::Scaled{at::scalar_tensor(i == 3 ? 1.F : 0.F)};
      // A rate of at most the peak, rounded to float32.
      const double rate = static_cast<float>(GetParam().peak_lr * (kSteps - i) / kSteps);
      by_number.set_gradients(i);
      expected->step(rate, flag);
      by_tensor.set_gradients(i);
      lr.fill_(rate);
      found->step_with(lr, flag);
    }
    const auto weights = flat(values_of(by_tensor.parameters()));
    if (GetParam().optimizer == "lamb") {
      expect_near(weights, flat(values_of(by_number.parameters())), 1e-6);
    } else {
      EXPECT_EQ(weights, flat(values_of(by_number.parameters())));
      EXPECT_TRUE(SavedState(*found) == SavedState(*expected));
    }
  }
}

TEST_P(OptimizerTest, NamesItsStateAfterTheParameters) {
  const ToyModel model;
  const auto optimizer = make_for(model);
  const bool moments = GetParam().optimizer == "adamw" || GetParam().optimizer == "lamb";
  std::set<std::string> expected;
  for (const NamedTensor& parameter : model.parameters()) {
    if (moments) {
      expected.insert(parameter.name + ".exp_avg");
      expected.insert(parameter.name + ".exp_avg_sq");
    } else {
      expected.insert(parameter.name + ".momentum");
    }
  }
  if (moments) expected.insert("steps");
  std::set<std::string> names;
  for (const NamedTensor& entry : optimizer->state().tensors) names.insert(entry.name);
  EXPECT_EQ(names, expected);
}

TEST_P(OptimizerTest, LeavesParametersWithoutGradientAlone) {
  ToyModel model;
  const auto optimizer = make_for(model);
  model.set_gradients(0);
  const at::Tensor idle = model.parameters().back().tensor;
  const at::Tensor before = idle.detach().clone();
  idle.mutable_grad().reset();
  optimizer->step(0.1, std::nullopt);
  EXPECT_TRUE(at::equal(idle, before));
}

TEST_P(OptimizerTest, KeepsFiniteWhereWeightsOrGradientsAreZero) {
  ToyModel model;
  const auto optimizer = make_for(model);
  model.set_gradients(0);
  {
    const at::NoGradGuard no_grad;
    model.parameters()[0].tensor.zero_();
    model.parameters()[3].tensor.mutable_grad().zero_();
  }
  optimizer->step(0.1, std::nullopt);
  for (const double value : flat(values_of(model.parameters()))) ASSERT_TRUE(std::isfinite(value));
  EXPECT_NE(flat({model.parameters()[0].tensor})[0], 0) << "weights of 0 must be updated, too";
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerTest, ::testing::ValuesIn(all_cases()), kLabel);

TEST(OptimizersTest, StepWithoutAnyParameters) {
  OptimizerRegistry registry("optimizer");
  recipes::register_optimizers(registry);
  for (const std::string& name : registry.names()) {
    const auto optimizer = registry.make(part_spec(name), {{}, 1});
    EXPECT_NO_THROW(optimizer->step(0.1, std::nullopt)) << name;
  }
}

TEST(OptimizersTest, RefuseImpossibleOptions) {
  const ToyModel model;
  for (const std::string name : {"sgdw", "adamw", "lars", "lamb"}) {
    SCOPED_TRACE(name);
    EXPECT_NO_THROW((void)make(name, model));
    EXPECT_THROW((void)make(name, model, 1, "{weight_decay: -1}"), ConfigError);
    EXPECT_THROW((void)make(name, model, 1, "{decay_groups: x}"), ConfigError);
  }
  EXPECT_THROW((void)make("sgdw", model, 0), ConfigError);
  EXPECT_THROW((void)make("sgdw", model, 1, "{momentum: 0, nesterov: true}"), ConfigError);
  EXPECT_THROW((void)make("lars", model, 1, "{momentum: -1}"), ConfigError);
  EXPECT_THROW((void)make("lars", model, 1, "{trust_coefficient: 0}"), ConfigError);
  for (const std::string name : {"adamw", "lamb"}) {
    SCOPED_TRACE(name);
    EXPECT_THROW((void)make(name, model, 1, "{beta1: 1}"), ConfigError);
    EXPECT_THROW((void)make(name, model, 1, "{beta2: -0.1}"), ConfigError);
    EXPECT_THROW((void)make(name, model, 1, "{epsilon: 0}"), ConfigError);
    EXPECT_THROW((void)make(name, model, 1, "{nesterov: true}"), ConfigError);
  }
}

}  // namespace
}  // namespace precast::test
