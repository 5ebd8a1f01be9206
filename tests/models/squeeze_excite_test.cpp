#include "models/detail/squeeze_excite.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "tests/models/golden_model.h"
#include "tests/support/noise_tensor.h"
#include "tests/support/paths.h"

namespace precast::test {
namespace {

std::unique_ptr<Model> excited_resnet18(double latent_channels, std::int64_t min_channels) {
  return make_model(
      {.arch = "resnet18",
       .num_classes = 10,
       .params = params(fmt::format("{{squeeze_excite: {{latent_channels: {}, min_channels: {}}}}}",
                                    latent_channels, min_channels))});
}

TEST(SqueezeExciteTest, LogitsAndParameterCountAreComposers) {
  const auto golden = nlohmann::json::parse(
      std::ifstream(test::golden_dir() + "/recipes/methods.json"))["squeeze_excite"];
  for (const auto& item : golden) {
    const auto model = excited_resnet18(item["latent_channels"].get<double>(),
                                        item["min_channels"].get<std::int64_t>());
    fill_by_formula(*model);
    model->train(false);
    std::int64_t count = 0;
    for (const NamedTensor& parameter : model->parameters()) count += parameter.tensor.numel();
    EXPECT_EQ(count, item["parameters"].get<std::int64_t>());
    const at::NoGradGuard no_grad;
    const at::Tensor logits = model->forward(make_batch(noise_tensor(1000, {2, 3, 40, 40}, 4)));
    const at::Tensor expected =
        at::tensor(item["logits"].get<std::vector<float>>()).view(logits.sizes());
    EXPECT_LE((logits - expected).abs().max().item<double>(), 1e-4);
  }
}

TEST(SqueezeExciteTest, TheRestKeepsItsNamesAndStartingWeights) {
  at::manual_seed(4);
  const auto plain = make_model({.arch = "resnet18", .num_classes = 10});
  at::manual_seed(4);
  const auto excited = excited_resnet18(64, 128);
  std::map<std::string, at::Tensor> weights;
  for (const NamedTensor& entry : excited->state()) weights[entry.name] = entry.tensor;
  for (const NamedTensor& entry : plain->state()) {
    ASSERT_EQ(weights.count(entry.name), 1U) << entry.name;
    EXPECT_TRUE(at::equal(weights[entry.name], entry.tensor)) << entry.name;
    weights.erase(entry.name);
  }
  for (const auto& [name, tensor] : weights) EXPECT_NE(name.find(".se.fc"), name.npos) << name;
  EXPECT_FALSE(weights.empty());
}

}  // namespace
}  // namespace precast::test
