#include "models/described.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/Version.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <fstream>

#include "framework/core/error.h"
#include "tests/models/golden_model.h"
#include "tests/support/message_matchers.h"
#include "tests/support/noise_tensor.h"
#include "tests/support/paths.h"

namespace precast::test {
namespace {

using testing::ThrowsMessage;

/// The first network of make_layers_goldens.py.
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

/// The `model.params` of a recipe as a YAML text.
std::string layers_of(const std::string& path) {
  Diagnostics diagnostics;
  const ConfigNode recipe = parse_yaml_file(path, diagnostics);
  diagnostics.throw_if_errors();
  return recipe.find("model")->find("params")->flow();
}

const nlohmann::json& golden(const std::string& network) {
  static const nlohmann::json values =
      nlohmann::json::parse(std::ifstream(test::golden_dir() + "/layers.json"));
  return values.at(network);
}

/// @return the largest difference, relative to the largest magnitude in `expected`.
double relative_error(const at::Tensor& values, const nlohmann::json& expected) {
  const at::Tensor there =
      at::tensor(expected.get<std::vector<double>>(), at::kDouble).view(values.sizes());
  return (values.detach().to(at::kDouble) - there).abs().max().item<double>() /
         there.abs().max().item<double>();
}

class DescribedGoldenTest : public ::testing::TestWithParam<std::string> {
 protected:
  const nlohmann::json& golden_ = golden(GetParam());
  std::string layers_ = GetParam() == "resnet9"
                            ? layers_of(test::source_dir() + "/configs/cifar10/rn9.yaml")
                            : kLayers;
};

TEST_P(DescribedGoldenTest, NamesAndStartingWeightsAreThoseOfPythonsSequential) {
  at::manual_seed(7);
  const auto model = described(layers_);
  std::vector<std::string> state;
  for (const NamedTensor& entry : model->state()) {
    state.push_back(entry.name);
    for (const std::int64_t side : entry.tensor.sizes()) state.back() += fmt::format(" {}", side);
  }
  EXPECT_EQ(state, golden_["state"].get<std::vector<std::string>>());
  if (std::string(at::get_cpu_capability()) == "DEFAULT") GTEST_SKIP() << "needs AVX2";
  EXPECT_EQ(weights_checksum(*model), golden_["seed7"].get<std::uint64_t>());
}

TEST_P(DescribedGoldenTest, LogitsAndGradientsAreThoseOfPythonsSequential) {
  const auto model = described(layers_);
  fill_by_formula(*model);
  const at::Tensor images = noise_tensor(1000, {4, 3, 32, 32}, 4);
  model->train(false);
  EXPECT_LE(relative_error(model->forward(make_batch(images)), golden_["eval_logits"]), 2e-5);
  to_double(*model);
  model->train(true);
  const at::Tensor logits = model->forward(make_batch(images.to(at::kDouble)));
  EXPECT_LE(relative_error(logits, golden_["train_logits"]), kFloat64Error);
  at::cross_entropy_loss(logits, at::tensor({3, 1, 4, 1}, at::kLong)).backward();
  const auto norms = golden_["gradient_norms"].get<std::vector<double>>();
  const std::vector<NamedTensor> parameters = model->parameters();
  ASSERT_EQ(parameters.size(), norms.size());
  for (std::size_t i = 0; i < norms.size(); ++i) {
    EXPECT_NEAR(parameters[i].tensor.grad().norm().item<double>(), norms[i],
                kFloat64Error * norms[i])
        << parameters[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, DescribedGoldenTest, ::testing::Values("all_layers", "resnet9"),
                         [](const auto& test) { return test.param; });

TEST(DescribedModelTest, AnyImageSizeFitsWhereTheEndIsPooled) {
  const auto model =
      described("{layers: [conv: {out: 8}, relu, global_avg_pool, flatten, linear]}");
  for (const std::int64_t side : {5, 32})
    EXPECT_EQ(model->forward(make_batch(noise_tensor(1, {2, 3, side, side}))).sizes(),
              (std::vector<std::int64_t>{2, 10}));
}

TEST(DescribedModelTest, WrongLayersAreNamedByTheirPlaces) {
  const auto expect_refusal = [](const std::string& layers, const auto&... facts) {
    EXPECT_THAT([&] { (void)described(fmt::format("{{layers: [{}]}}", layers)); },
                ThrowsMessage<ConfigError>(Names(facts...)))
        << layers;
  };
  expect_refusal("conv: {out: 8}, rely", "model.params.layers[1]", "'rely'", "'relu'");
  expect_refusal("conv: {outs: 8}", "model.params.layers[0].conv.outs");
  expect_refusal("conv", "model.params.layers[0].conv.out");
  expect_refusal("conv: {out: 8, groups: 2}", "model.params.layers[0].conv.groups", 3, 8, 2);
  expect_refusal("scale", "model.params.layers[0].scale.factor");
  expect_refusal("flatten, global_max_pool", "model.params.layers[0].flatten");
  expect_refusal("relu, linear", "model.params.layers[1].linear", "flatten");
  expect_refusal("flatten", "model.params.layers[0].flatten", "model.params.image_size");
  expect_refusal("residual: {layers: [conv: {out: 8}]}", "model.params.layers[0].residual", 3, 8);
  expect_refusal("residual: {layers: [relu, tanh]}", "model.params.layers[0].residual.layers[1]",
                 "'tanh'");
  expect_refusal("global_avg_pool, flatten, linear: {out: 7}", "model.params.layers", 10, 7);
  expect_refusal("", "model.params.layers");
}

TEST(DescribedModelTest, AnErrorHasNoNumberOfClassesBeforeItIsKnown) {
  const ModelSpec unknown{
      .arch = "layers", .num_classes = 1, .params = params("{layers: [conv: {out: 8}]}")};
  EXPECT_THAT([&] { (void)make_model(unknown); },
              ThrowsMessage<ConfigError>(
                  testing::AllOf(Names("model.params.layers", "global_avg_pool", "linear"),
                                 testing::Not(testing::HasSubstr("1 feature")))));
}

TEST(DescribedModelTest, ArraysOfAnyTypeAreFeatures) {
  const auto model = described("{features: 6, layers: [linear: {out: 4}, relu, linear]}");
  const at::Tensor values = noise_tensor(1, {5, 2, 3}).to(at::kDouble);
  const at::Tensor outputs = model->forward(make_batch(values));
  EXPECT_EQ(outputs.sizes(), at::IntArrayRef({5, 10}));
  EXPECT_TRUE(outputs.equal(model->forward(make_batch(values.to(at::kFloat).view({5, 6})))));
}

TEST(DescribedModelTest, LayersForImagesAreRefusedAfterAnArray) {
  EXPECT_THAT([] { (void)described("{features: 6, layers: [relu, conv: {out: 4}, linear]}"); },
              ThrowsMessage<ConfigError>(
                  Names("model.params.layers[1].conv", "6 features", "model.params.features")));
  EXPECT_THAT([] { (void)described("{image_size: 2, layers: [flatten, max_pool]}"); },
              ThrowsMessage<ConfigError>(
                  Names("model.params.layers[1].max_pool", "12 features", "flatten")));
}

TEST(DescribedModelTest, TheNumberOfClassesIsAtLeastOne) {
  for (const std::int64_t classes : {0, -3}) {
    EXPECT_THAT(
        [&] {
          (void)make_model({.arch = "layers",
                            .num_classes = classes,
                            .params = params("{layers: [global_avg_pool, flatten, linear]}")});
        },
        ThrowsMessage<ConfigError>(Names("layers", "num_classes", 1, classes)));
  }
}

TEST(DescribedModelTest, ForMasksEachPixelHasAnOutput) {
  ModelSpec spec{.arch = "layers", .num_classes = 10, .targets = TargetKind::class_mask};
  spec.params = params("{layers: [conv: {out: 4, stride: 2}, upsample, conv: {out: 0}]}");
  const at::Tensor outputs = make_model(spec)->forward(make_batch(noise_tensor(1, {2, 3, 8, 8})));
  EXPECT_EQ(outputs.sizes(), at::IntArrayRef({2, 10, 8, 8}));
  spec.params = params("{layers: [global_avg_pool, flatten, linear]}");
  EXPECT_THAT([&] { (void)make_model(spec); },
              ThrowsMessage<ConfigError>(Names("model.params.layers", "10 channels")));
}

TEST(DescribedModelTest, WithoutTargetsOutputsHaveAnyShape) {
  ModelSpec spec{.arch = "layers", .num_classes = 10, .targets = TargetKind::none};
  spec.params = params("{layers: [conv: {out: 3}]}");
  const at::Tensor images = noise_tensor(1, {2, 3, 8, 8});
  EXPECT_EQ(make_model(spec)->forward(make_batch(images)).sizes(), images.sizes());
  spec.params = params("{layers: [global_avg_pool, flatten, linear: {out: 7}]}");
  EXPECT_EQ(make_model(spec)->forward(make_batch(images)).sizes(), at::IntArrayRef({2, 7}));
}

TEST(DescribedModelTest, ALayerThatDoesNotWorkOnTheImagesIsNamedEvenIfTheirSizeIsNotInTheRecipe) {
  const auto residual = described(
      "{layers: [conv: {out: 8}, residual: {layers: [conv: {out: 8, stride: 2}]}, "
      "global_avg_pool, flatten, linear]}");
  // At 2 px, libtorch would broadcast the output of the branch.
  for (const std::int64_t side : {16, 2}) {
    EXPECT_THAT(
        [&] {
          (void)residual->forward(make_batch(noise_tensor(1, {2, 3, side, side})));
        },
        ThrowsMessage<ConfigError>(
            Names("model.params.layers[1].residual", fmt::format("{0} x {0} px", side),
                  fmt::format("{0} x {0} px", side / 2), fmt::format(" {} px)", side))))
        << side;
  }
  const auto pools =
      described("{layers: [max_pool, max_pool, max_pool, global_avg_pool, flatten, linear]}");
  EXPECT_THAT(
      [&] {
        (void)pools->forward(make_batch(noise_tensor(1, {2, 3, 4, 4})));
      },
      ThrowsMessage<ConfigError>(Names("model.params.layers[2].max_pool", "2 px", "1 x 1")));
  // The layers fit this size; the images have too many channels.
  EXPECT_THROW((void)pools->forward(make_batch(noise_tensor(1, {2, 4, 16, 16}))), c10::Error);
}

void run_out_of_memory(const c10::OperatorHandle& /*op*/, torch::jit::Stack* /*stack*/) {
  TORCH_CHECK_WITH(OutOfMemoryError, false, "Tried to allocate 7 GiB");
}

TEST(DescribedModelTest, TooLittleMemoryIsNotReportedAsAWrongLayer) {
  const auto model =
      described("{layers: [gelu, max_pool, max_pool, max_pool, global_avg_pool, flatten, linear]}");
  // The last pool does not work on this size, but the first layer runs out of memory.
  const Batch images = make_batch(noise_tensor(1, {2, 3, 4, 4}));
  constexpr auto kMode = c10::DispatchKey::TESTING_ONLY_GenericMode;
  torch::Library others(torch::Library::IMPL, "_", kMode, __FILE__, __LINE__);
  others.fallback(torch::CppFunction::makeFallthrough());
  torch::Library gelu(torch::Library::IMPL, "aten", kMode, __FILE__, __LINE__);
  gelu.impl("gelu", torch::CppFunction::makeFromBoxedFunction<&run_out_of_memory>());
  const c10::impl::IncludeDispatchKeyGuard mode(kMode);
  EXPECT_THROW((void)model->forward(images), c10::OutOfMemoryError);
}

TEST(DescribedModelTest, WindowsLargerThanTheImageAreRefused) {
  EXPECT_THAT(
      [] { (void)described("{image_size: 4, layers: [max_pool, max_pool, max_pool]}"); },
      ThrowsMessage<ConfigError>(Names("model.params.layers[2].max_pool", "2 px", "1 x 1")));
}

}  // namespace
}  // namespace precast::test
