#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "framework/api/method.h"
#include "tests/recipes/make_method.h"
#include "tests/recipes/norm_model.h"
#include "tests/recipes/recipe_golden.h"
#include "tests/recipes/saved_state.h"
#include "tests/recipes/toy_model.h"

namespace precast::test {
namespace {

TEST(EmaTest, EvaluatesTorchsAverageAndRestoresTheWeights) {
  NormModel model;
  const auto ema = make_method("ema", "{decay: 0.75}");
  ema->on_train_begin(model);
  for (std::uint32_t step = 0; step < 4; ++step) {
    model.set(step);
    ema->on_step_end(model, step);
  }
  const std::vector<double> weights = flat(values_of(model.state()));
  const void* address = model.state().front().tensor.const_data_ptr();
  {
    const auto guard = ema->eval_scope(model);
    expect_near(model.floats(), recipe_golden()["ema"]);
    EXPECT_EQ(model.state().back().tensor.item<std::int64_t>(), 3) << "counts are not averaged";
  }
  EXPECT_EQ(flat(values_of(model.state())), weights) << "bit for bit";
  EXPECT_EQ(model.state().front().tensor.const_data_ptr(), address) << "optimisers keep working";
}

TEST(EmaTest, AveragesParametersThatRequireGradients) {
  ToyModel model;
  const auto ema = make_method("ema", "{decay: 0.5}");
  const at::Tensor weight = model.parameters().front().tensor;
  ema->on_train_begin(model);
  ema->on_step_end(model, 0);
  {
    const at::NoGradGuard no_grad;
    weight.add_(1);
  }
  const at::Tensor live = weight.detach().clone();
  ema->on_step_end(model, 1);
  {
    const auto guard = ema->eval_scope(model);
    EXPECT_TRUE(at::allclose(weight, live - 0.5));
  }
  EXPECT_TRUE(at::equal(weight, live));
  EXPECT_TRUE(weight.requires_grad());
}

TEST(EmaTest, EvaluatesTheWeightsThemselvesBeforeTheFirstStep) {
  NormModel model;
  const auto ema = make_method("ema");
  ema->on_train_begin(model);
  EXPECT_EQ(ema->eval_scope(model), nullptr);
}

std::vector<double> evaluated(Method& ema, NormModel& model) {
  const auto guard = ema.eval_scope(model);
  return model.floats();
}

TEST(EmaTest, FiftyStepsAreTorchs) {
  NormModel model;
  const auto ema = make_method("ema", "{decay: 0.9}");
  ASSERT_EQ(optimizer_golden()["ema"]["decay"], 0.9);
  ema->on_train_begin(model);
  for (std::uint32_t step = 0; step < 50; ++step) {
    model.set(step);
    ema->on_step_end(model, step);
  }
  expect_near(evaluated(*ema, model), optimizer_golden()["ema"]["averages"]);
}

TEST(EmaTest, ARestoredStateContinuesBitForBit) {
  // 0: the state before the first step, which copies the weights.
  for (const std::uint32_t kept_at : {0U, 10U}) {
    NormModel model;
    const auto whole = make_method("ema");
    const auto resumed = make_method("ema");
    whole->on_train_begin(model);
    for (std::uint32_t step = 0; step < 20; ++step) {
      if (step == kept_at) {
        resumed->on_train_begin(model);
        SavedState(*whole).restore_into(*resumed);
      }
      model.set(step);
      whole->on_step_end(model, step);
      if (step >= kept_at) resumed->on_step_end(model, step);
    }
    EXPECT_TRUE(SavedState(*resumed) == SavedState(*whole)) << kept_at;
    EXPECT_EQ(evaluated(*resumed, model), evaluated(*whole, model)) << kept_at;
  }
}

TEST(EmaTest, NamesItsStateAfterTheModels) {
  NormModel model;
  const auto ema = make_method("ema");
  ema->on_train_begin(model);
  std::vector<std::string> names;
  for (const NamedTensor& entry : ema->state().tensors) names.push_back(entry.name);
  EXPECT_EQ(names, (std::vector<std::string>{"weight.ema", "bias.ema", "running_mean.ema",
                                             "running_var.ema"}));
  EXPECT_EQ(ema->state().counters, (std::map<std::string, std::int64_t>{{"updates", 0}}));
}

}  // namespace
}  // namespace precast::test
