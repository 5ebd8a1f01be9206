#include "models/described.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/Version.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "framework/core/error.h"
#include "tests/models/golden_model.h"
#include "tests/support/noise_tensor.h"

namespace precast::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// The network of make_layers_goldens.py.
constexpr const char* kLayers = R"({image_size: 32, layers: [
  conv: {out: 16, stride: 2, bias: false}, bn, relu,
  max_pool: {kernel: 3, stride: 2, padding: 1},
  residual: {layers: [conv: {out: 24, stride: 2}, gelu, conv: {out: 24, groups: 4}],
             shortcut: [conv: {out: 24, kernel: 1, stride: 2}]},
  residual: {layers: [bn, relu, conv: {out: 24, kernel: 1}]},
  avg_pool: {kernel: 2}, dropout: {p: 0}, flatten, linear: {out: 20, bias: false}, relu,
  linear]})";

std::unique_ptr<Model> described(const std::string& yaml) {
  return make_model({.arch = "layers", .num_classes = 10, .params = params(yaml)});
}

const nlohmann::json& golden() {
  static const nlohmann::json values =
      nlohmann::json::parse(std::ifstream(PRECAST_GOLDEN_DIR "/layers.json"));
  return values;
}

/// Largest difference, in units of the largest golden magnitude.
double relative_error(const at::Tensor& values, const nlohmann::json& expected) {
  const at::Tensor there =
      at::tensor(expected.get<std::vector<double>>(), at::kDouble).view(values.sizes());
  return (values.detach().to(at::kDouble) - there).abs().max().item<double>() /
         there.abs().max().item<double>();
}

TEST(DescribedModelTest, NamesAndStartingWeightsAreThoseOfPythonsSequential) {
  at::manual_seed(7);
  const auto model = described(kLayers);
  std::vector<std::string> state;
  for (const NamedTensor& entry : model->state()) {
    state.push_back(entry.name);
    for (const std::int64_t side : entry.tensor.sizes()) state.back() += fmt::format(" {}", side);
  }
  EXPECT_EQ(state, golden()["state"].get<std::vector<std::string>>());
  if (std::string(at::get_cpu_capability()) == "DEFAULT") GTEST_SKIP() << "needs AVX2";
  EXPECT_EQ(weights_checksum(*model), golden()["seed7"].get<std::uint64_t>());
}

TEST(DescribedModelTest, LogitsAndGradientsAreThoseOfPythonsSequential) {
  const auto model = described(kLayers);
  fill_by_formula(*model);
  const at::Tensor images = noise_tensor(1000, {4, 3, 32, 32}, 4);
  model->train(false);
  EXPECT_LE(relative_error(model->forward(images), golden()["eval_logits"]), 1e-5);
  model->train(true);
  const at::Tensor logits = model->forward(images);
  EXPECT_LE(relative_error(logits, golden()["train_logits"]), 1e-4);
  at::cross_entropy_loss(logits, at::tensor({3, 1, 4, 1}, at::kLong)).backward();
  const auto norms = golden()["gradient_norms"].get<std::vector<double>>();
  const std::vector<NamedTensor> parameters = model->parameters();
  ASSERT_EQ(parameters.size(), norms.size());
  for (std::size_t i = 0; i < norms.size(); ++i) {
    EXPECT_NEAR(parameters[i].tensor.grad().to(at::kDouble).norm().item<double>(), norms[i],
                1e-3 * norms[i])
        << parameters[i].name;
  }
}

TEST(DescribedModelTest, AnyImageSizeFitsWhereTheEndIsPooled) {
  const auto model =
      described("{layers: [conv: {out: 8}, relu, global_avg_pool, flatten, linear]}");
  for (const std::int64_t side : {5, 32})
    EXPECT_EQ(model->forward(noise_tensor(1, {2, 3, side, side})).sizes(),
              (std::vector<std::int64_t>{2, 10}));
}

TEST(DescribedModelTest, WrongLayersAreNamedByTheirPlaces) {
  const auto refusal = [](const std::string& layers) -> std::string {
    try {
      (void)described(fmt::format("{{layers: [{}]}}", layers));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal("conv: {out: 8}, rely"),
              AllOf(HasSubstr("layers[1]: unknown layer 'rely'"), HasSubstr("'relu'")));
  EXPECT_THAT(refusal("conv: {outs: 8}"), HasSubstr("layers[0].conv.outs"));
  EXPECT_THAT(refusal("conv"), AllOf(HasSubstr("layers[0].conv"), HasSubstr("out")));
  EXPECT_THAT(refusal("conv: {out: 8, groups: 2}"), HasSubstr("layers[0].conv.groups"));
  EXPECT_THAT(refusal("relu, linear"),
              AllOf(HasSubstr("layers[1].linear"), HasSubstr("Put flatten before it")));
  EXPECT_THAT(refusal("flatten"), HasSubstr("give model.params.image_size"));
  EXPECT_THAT(refusal("residual: {layers: [conv: {out: 8}]}"),
              AllOf(HasSubstr("layers[0].residual"), HasSubstr("expected 3 channels"),
                    HasSubstr("got 8 channels")));
  EXPECT_THAT(refusal("residual: {layers: [relu, tanh]}"),
              HasSubstr("layers[0].residual.layers[1]: unknown layer 'tanh'"));
  EXPECT_THAT(refusal("global_avg_pool, flatten, linear: {out: 7}"),
              AllOf(HasSubstr("expected 10 features"), HasSubstr("got 7 features")));
  EXPECT_THAT(refusal(""), HasSubstr("expected a list of layers"));
}

TEST(DescribedModelTest, WindowsLargerThanTheImageAreRefused) {
  try {
    (void)described("{image_size: 4, layers: [max_pool, max_pool, max_pool]}");
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("layers[2].max_pool"), HasSubstr("expected images of at least 2")));
  }
}

}  // namespace
}  // namespace precast::test
