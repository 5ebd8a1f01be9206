#include <gtest/gtest.h>

#include "framework/api/method.h"
#include "tests/recipes/make_method.h"
#include "tests/recipes/recipe_golden.h"
#include "tests/recipes/toy_model.h"

namespace precast::test {
namespace {

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

}  // namespace
}  // namespace precast::test
