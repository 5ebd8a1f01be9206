#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "recipes/register.h"
#include "tests/recipes/recipe_golden.h"
#include "tests/recipes/toy_model.h"
#include "tests/support/part_spec.h"

namespace precast::test {
namespace {

std::unique_ptr<Optimizer> make_sgd(const Model& model, const std::string& options = "") {
  OptimizerRegistry registry("optimizer");
  recipes::register_optimizers(registry);
  return registry.make(part_spec("sgd", options), {model.parameters()});
}

double rate_of(std::uint32_t step) {
  return 0.4 - 0.05 * step;
}

void expect_golden(const Model& model, const std::string& name) {
  expect_near(flat(values_of(model.parameters())), recipe_golden()["sgd"][name]);
}

struct Case {
  std::string name;
  std::string options;
};

class SgdGoldenTest : public ::testing::TestWithParam<Case> {};

TEST_P(SgdGoldenTest, FiveStepsAreTorchs) {
  ToyModel model;
  const auto sgd = make_sgd(model, GetParam().options);
  for (std::uint32_t step = 0; step < 5; ++step) {
    model.set_gradients(step);
    sgd->step(rate_of(step), std::nullopt);
  }
  expect_golden(model, GetParam().name);
}

TEST_P(SgdGoldenTest, ChannelsLastWeightsTakeGradientsOfAnyLayout) {
  ToyModel model;
  model.to(at::kCPU, /*channels_last=*/true);
  ASSERT_FALSE(model.parameters().front().tensor.is_contiguous());
  const auto sgd = make_sgd(model, GetParam().options);
  for (std::uint32_t step = 0; step < 5; ++step) {
    model.set_gradients(step);  // contiguous
    if (step % 2 == 0) {
      at::Tensor& gradient = model.parameters().front().tensor.mutable_grad();
      gradient = gradient.contiguous(at::MemoryFormat::ChannelsLast);
    }
    sgd->step(rate_of(step), std::nullopt);
  }
  expect_golden(model, GetParam().name);
}

TEST_P(SgdGoldenTest, AStepWithFoundInfLeavesNoTrace) {
  ToyModel model;
  const auto sgd = make_sgd(model, GetParam().options);
  const Optimizer::Scaled fine{at::tensor(0.F)};
  const Optimizer::Scaled overflow{at::tensor(1.F)};
  for (std::uint32_t step = 0; step < 5; ++step) {
    // Steps with found_inf before the first step and between the others must change neither weights
    // nor velocities.
    model.set_gradients(50);
    const std::vector<double> before = flat(values_of(model.parameters()));
    sgd->step(rate_of(step), overflow);
    ASSERT_EQ(flat(values_of(model.parameters())), before);
    model.set_gradients(step);
    sgd->step(rate_of(step), fine);
  }
  expect_golden(model, GetParam().name);
}

INSTANTIATE_TEST_SUITE_P(
    Sgd, SgdGoldenTest,
    ::testing::Values(Case{"legacy", "{weight_decay: 0.05}"},
                      Case{"clean", "{weight_decay: 0.05, decay_groups: clean}"},
                      Case{"nesterov", "{weight_decay: 0.05, nesterov: true}"},
                      Case{"no_momentum", "{momentum: 0, weight_decay: 0.05}"}),
    [](const auto& test) { return test.param.name; });

TEST(SgdTest, LeavesParametersWithoutGradientAlone) {
  ToyModel model;
  const auto sgd = make_sgd(model);
  model.set_gradients(0);
  const at::Tensor idle = model.parameters().back().tensor;
  const at::Tensor busy = model.parameters().front().tensor;
  const at::Tensor idle_before = idle.detach().clone();
  const at::Tensor busy_before = busy.detach().clone();
  idle.mutable_grad().reset();
  sgd->step(0.1, std::nullopt);
  EXPECT_TRUE(at::equal(idle, idle_before));
  EXPECT_FALSE(at::equal(busy, busy_before));
}

TEST(SgdTest, KeepsNoGradientAlive) {
  ToyModel model;
  const auto sgd = make_sgd(model);
  model.set_gradients(0);
  const at::Tensor gradient = model.parameters().front().tensor.grad();
  sgd->step(0.1, std::nullopt);
  for (const NamedTensor& parameter : model.parameters()) parameter.tensor.mutable_grad().reset();
  EXPECT_EQ(gradient.use_count(), 1) << "the optimiser keeps no reference";
}

TEST(SgdTest, RefusesImpossibleOptions) {
  const ToyModel model;
  EXPECT_THROW((void)make_sgd(model, "{momentum: -0.1}"), ConfigError);
  EXPECT_THROW((void)make_sgd(model, "{weight_decay: -1}"), ConfigError);
  EXPECT_THROW((void)make_sgd(model, "{momentum: 0, nesterov: true}"), ConfigError);
  EXPECT_THROW((void)make_sgd(model, "{decay_groups: modern}"), ConfigError);
}

}  // namespace
}  // namespace precast::test
