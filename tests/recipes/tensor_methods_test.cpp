// Methods that work on a model's tensors: gradient_clipping and ema.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "framework/api/method.h"
#include "recipes/register.h"
#include "tests/recipes/recipe_golden.h"
#include "tests/recipes/toy_model.h"
#include "tests/support/noise_tensor.h"

namespace precast::test {
namespace {

std::unique_ptr<Method> make_method(const std::string& name, const std::string& options) {
  MethodRegistry registry("method");
  recipes::register_methods(registry);
  auto method = registry.create(name);
  Diagnostics diagnostics;
  Schema schema;
  method->options(schema);
  schema.apply(parse_override(options, {"test", 1, 1}, diagnostics), diagnostics, name);
  diagnostics.throw_if_errors();
  return method;
}

void expect_near(const std::vector<double>& actual, const nlohmann::json& golden) {
  const auto expected = golden.get<std::vector<double>>();
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-6) << i;
}

std::vector<at::Tensor> gradients(const Model& model) {
  std::vector<at::Tensor> all;
  for (const NamedTensor& parameter : model.parameters()) all.push_back(parameter.tensor.grad());
  return all;
}

TEST(GradientClippingTest, ScalesAllGradientsAsTorchDoes) {
  for (const auto& [max_norm, golden] : recipe_golden()["clipped"].items()) {
    ToyModel model;
    model.set_gradients(0);
    make_method("gradient_clipping", "{max_norm: " + max_norm + "}")->on_gradients(model);
    expect_near(flat(gradients(model)), golden);
  }
}

TEST(GradientClippingTest, WorksWithoutAnyGradient) {
  ToyModel model;
  EXPECT_NO_THROW(make_method("gradient_clipping", "{max_norm: 1}")->on_gradients(model));
}

/// The state of a batch norm of 6 channels, as the golden averages it.
class NormModel final : public Model {
 public:
  [[nodiscard]] at::Tensor forward(const at::Tensor& images) override { return images; }
  [[nodiscard]] std::vector<NamedTensor> parameters() const override {
    return {state_.begin(), state_.begin() + 2};
  }
  [[nodiscard]] std::vector<NamedTensor> state() const override { return state_; }
  void train(bool) override {}
  void to(at::Device, bool) override {}

  void set(std::uint32_t step) {
    for (std::uint32_t i = 0; i < 4; ++i) state_[i].tensor.copy_(noise_tensor(100 * step + i, {6}));
    state_[4].tensor.fill_(static_cast<std::int64_t>(step));
  }

 private:
  std::vector<NamedTensor> state_ = {{"weight", noise_tensor(1, {6})},
                                     {"bias", noise_tensor(1, {6})},
                                     {"running_mean", noise_tensor(1, {6})},
                                     {"running_var", noise_tensor(1, {6})},
                                     {"num_batches_tracked", at::empty({}, at::kLong)}};
};

std::vector<at::Tensor> floats(const Model& model) {
  std::vector<at::Tensor> all = values_of(model.state());
  all.pop_back();
  return all;
}

TEST(EmaTest, EvaluatesTorchsAverageAndRestoresTheWeights) {
  NormModel model;
  const auto ema = make_method("ema", "{decay: 0.75}");
  for (std::uint32_t step = 0; step < 4; ++step) {
    model.set(step);
    ema->on_step_end(model, step);
  }
  const std::vector<double> weights = flat(values_of(model.state()));
  const void* address = model.state().front().tensor.const_data_ptr();
  {
    const auto guard = ema->eval_scope(model);
    expect_near(flat(floats(model)), recipe_golden()["ema"]);
    EXPECT_EQ(model.state().back().tensor.item<std::int64_t>(), 3) << "counts are not averaged";
  }
  EXPECT_EQ(flat(values_of(model.state())), weights) << "bit for bit";
  EXPECT_EQ(model.state().front().tensor.const_data_ptr(), address) << "optimisers keep working";
}

TEST(EmaTest, AveragesParametersThatRequireGradients) {
  ToyModel model;
  const auto ema = make_method("ema", "{decay: 0.5}");
  const at::Tensor weight = model.parameters().front().tensor;
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
  EXPECT_EQ(make_method("ema", "{}")->eval_scope(model), nullptr);
}

}  // namespace
}  // namespace precast::test
