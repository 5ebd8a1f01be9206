#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "framework/api/method.h"
#include "framework/core/error.h"
#include "tests/recipes/make_method.h"
#include "tests/recipes/recipe_golden.h"
#include "tests/recipes/toy_model.h"

namespace precast::test {
namespace {

std::vector<at::Tensor> gradients_of(const Model& model) {
  std::vector<at::Tensor> all;
  for (const NamedTensor& parameter : model.parameters()) all.push_back(parameter.tensor.grad());
  return all;
}

TEST(AdaptiveGradientClippingTest, ConvolutionsLinearLayersAndBiasesAreTimms) {
  const auto& cases = method_golden()["adaptive_gradient_clipping"];
  ASSERT_EQ(cases.size(), 3U);
  for (const auto& item : cases) {
    for (const bool channels_last : {false, true}) {
      ToyModel model;
      model.to(at::kCPU, channels_last);
      model.set_gradients(0);
      make_method("adaptive_gradient_clipping", "{threshold: " + item["threshold"].dump() +
                                                    ", epsilon: " + item["epsilon"].dump() + "}")
          ->on_gradients(model);
      expect_near(flat(gradients_of(model)), item["gradients"]);
    }
  }
}

TEST(AdaptiveGradientClippingTest, GradientsOfZeroStayAndThoseOfZeroWeightsAreClipped) {
  ToyModel model;
  std::vector<NamedTensor> parameters = model.parameters();
  for (const NamedTensor& parameter : parameters) {
    parameter.tensor.detach().zero_();
    parameter.tensor.mutable_grad() = at::zeros_like(parameter.tensor);
  }
  const auto method = make_method("adaptive_gradient_clipping", "{threshold: 0.5, epsilon: 0.1}");
  method->on_gradients(model);
  for (const double value : flat(gradients_of(model))) EXPECT_EQ(value, 0);
  for (const NamedTensor& parameter : parameters)
    parameter.tensor.mutable_grad() = at::full_like(parameter.tensor, 3);
  method->on_gradients(model);
  // conv1.weight has units of 27 values; fc.bias is one unit of 5 values.
  EXPECT_NEAR(parameters.front().tensor.grad().norm().item<double>(), 0.05 * std::sqrt(6), 1e-6);
  EXPECT_NEAR(parameters.back().tensor.grad().norm().item<double>(), 0.05, 1e-6);
}

TEST(AdaptiveGradientClippingTest, NonFiniteGradientsStayNonFinite) {
  for (const double value :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    ToyModel model;
    model.set_gradients(0);
    const at::Tensor gradient = model.parameters().front().tensor.grad();
    gradient.view(-1)[4] = value;
    make_method("adaptive_gradient_clipping")->on_gradients(model);
    EXPECT_FALSE(std::isfinite(gradient.sum().item<double>())) << value;
  }
}

TEST(AdaptiveGradientClippingTest, WorksWithoutAnyGradientAndChecksItsOptions) {
  ToyModel model;
  EXPECT_NO_THROW(make_method("adaptive_gradient_clipping")->on_gradients(model));
  EXPECT_THROW((void)make_method("adaptive_gradient_clipping", "{threshold: 0}"), ConfigError);
  EXPECT_THROW((void)make_method("adaptive_gradient_clipping", "{epsilon: 0}"), ConfigError);
}

}  // namespace
}  // namespace precast::test
