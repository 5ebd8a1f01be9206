#include "models/detail/stochastic_depth.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "framework/core/error.h"
#include "tests/models/golden_model.h"
#include "tests/support/noise_tensor.h"
#include "tests/support/paths.h"

namespace precast::test {
namespace {

const nlohmann::json& golden() {
  static const nlohmann::json value = nlohmann::json::parse(
      std::ifstream(test::golden_dir() + "/recipes/methods.json"))["stochastic_depth"];
  return value;
}

TEST(StochasticDepthTest, LeavesOutWhatTorchvisionLeavesOut) {
  const at::Tensor branch = noise_tensor(2, {8, 2, 2, 2});
  for (const bool per_sample : {false, true}) {
    at::manual_seed(11);
    for (const auto& output : golden()["outputs"][per_sample ? "row" : "batch"]) {
      const at::Tensor expected = at::tensor(output.get<std::vector<float>>()).view(branch.sizes());
      EXPECT_TRUE(
          at::allclose(models::detail::drop_branch(branch, 0.4, per_sample), expected, 1e-6, 1e-7));
    }
  }
}

std::unique_ptr<Model> resnet18(const std::string& options) {
  at::manual_seed(4);
  return make_model({.arch = "resnet18",
                     .num_classes = 10,
                     .params = params(fmt::format("{{stochastic_depth: {}}}", options))});
}

TEST(StochasticDepthTest, ActsInTrainingAlone) {
  const at::NoGradGuard no_grad;
  const at::Tensor images = noise_tensor(1, {4, 3, 32, 32});
  const auto plain = resnet18("{drop_rate: 0}");
  const auto drops = resnet18("{drop_rate: 0.9, distribution: uniform}");
  plain->train(false);
  drops->train(false);
  EXPECT_TRUE(at::equal(plain->forward(make_batch(images)), drops->forward(make_batch(images))));
  plain->train(true);
  drops->train(true);
  EXPECT_FALSE(at::equal(plain->forward(make_batch(images)), drops->forward(make_batch(images))));
}

TEST(StochasticDepthTest, RatesOverTheBlocksAreComposers) {
  for (const bool linear : {false, true}) {
    const auto expected =
        golden()["rates"][linear ? "linear" : "uniform"].get<std::vector<double>>();
    const auto rates =
        models::detail::drop_rates({.drop_rate = 0.2, .linear = linear}, expected.size());
    for (std::size_t i = 0; i < rates.size(); ++i) EXPECT_NEAR(rates[i], expected[i], 1e-7) << i;
  }
}

TEST(StochasticDepthTest, RefusesARateOfOne) {
  EXPECT_THROW((void)resnet18("{drop_rate: 1}"), ConfigError);
}

}  // namespace
}  // namespace precast::test
