#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/Version.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "framework/core/error.h"
#include "models/detail/blurred_layers.h"
#include "tests/models/golden_model.h"
#include "tests/support/message_matchers.h"
#include "tests/support/noise_tensor.h"
#include "tests/support/paths.h"
#include "tests/support/text_file.h"

namespace precast::test {
namespace {

using ::testing::ThrowsMessage;

std::string state_text(const Model& model) {
  std::ostringstream text;
  for (const NamedTensor& entry : model.state()) {
    text << entry.name;
    for (const std::int64_t size : entry.tensor.sizes()) text << ' ' << size;
    text << '\n';
  }
  return text.str();
}

std::string golden_text(const std::string& file) {
  return test::read_text(test::golden_dir() + "/torchvision/" + file);
}

/// @return the largest difference between `values` and `golden`, relative to the largest magnitude
/// in `golden`.
double relative_error(const at::Tensor& values, const nlohmann::json& golden) {
  const at::Tensor expected =
      at::tensor(golden.get<std::vector<double>>(), at::kDouble).view(values.sizes());
  return (values.to(at::kDouble) - expected).abs().max().item<double>() /
         expected.abs().max().item<double>();
}

class EveryArchTest : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryArchTest, HasTorchvisionsParameterCount) {
  std::int64_t count = 0;
  for (const NamedTensor& parameter : make_model({.arch = GetParam()})->parameters())
    count += parameter.tensor.numel();
  EXPECT_EQ(count, torchvision_golden()["parameters"][GetParam()].get<std::int64_t>());
}

TEST_P(EveryArchTest, StartsFromTorchvisionsWeightsBitForBit) {
  if (std::string(at::get_cpu_capability()) == "DEFAULT")
    GTEST_SKIP() << "without AVX2, torch draws other normal numbers than on the golden's machine";
  at::manual_seed(7);
  EXPECT_EQ(weights_checksum(*make_model({.arch = GetParam()})),
            torchvision_golden()["seed7"][GetParam()].get<std::uint64_t>());
}

INSTANTIATE_TEST_SUITE_P(Models, EveryArchTest,
                         ::testing::Values("resnet18", "resnet34", "resnet50", "resnet101",
                                           "resnet152", "wide_resnet50_2", "resnext50_32x4d"),
                         [](const auto& arch) { return arch.param; });

TEST(ResNetTest, BlurPoolChangesNeitherNamesNorStartingWeights) {
  at::manual_seed(3);
  const auto plain = make_model({.arch = "resnet18", .num_classes = 10});
  at::manual_seed(3);
  const auto blurred = make_model({.arch = "resnet18", .num_classes = 10, .blurpool = true});
  EXPECT_EQ(state_text(*plain), state_text(*blurred));
  EXPECT_EQ(weights_checksum(*plain), weights_checksum(*blurred));
}

/// The layers with a filter in ffcv-imagenet's network, and their channels.
std::map<std::string, std::int64_t> golden_filters(const std::string& file) {
  std::map<std::string, std::int64_t> filters;
  std::istringstream lines(golden_text(file));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = line.find(".blur_filter ");
    if (end != line.npos) filters[line.substr(0, end)] = std::stoll(line.substr(line.find(' ')));
  }
  return filters;
}

TEST(ResNetTest, BlurredLayersAreThoseOfFfcvImagenet) {
  for (const std::string arch : {"resnet18", "resnet50"}) {
    const auto layers = models::blurred_layers(*make_model({.arch = arch, .blurpool = true}));
    EXPECT_EQ(layers, golden_filters(arch + "_ffcv_state.txt"));
    EXPECT_EQ(layers.size(), 6U);
    EXPECT_TRUE(models::blurred_layers(*make_model({.arch = arch})).empty());
  }
}

TEST(ResNetTest, TimmsNetworksHaveTheSameNamesAndShapes) {
  for (const std::string arch : {"resnet18", "resnet50"})
    EXPECT_EQ(golden_text(arch + "_timm_state.txt"), golden_text(arch + "_state.txt"));
}

TEST(ResNetTest, StateHasTorchvisionsNamesOrderAndShapes) {
  EXPECT_EQ(state_text(*make_model({.arch = "resnet18"})), golden_text("resnet18_state.txt"));
  EXPECT_EQ(state_text(*make_model({.arch = "resnet50"})), golden_text("resnet50_state.txt"));
}

TEST(ResNetTest, ZeroInitResidualStartsAsTorchvisions) {
  if (std::string(at::get_cpu_capability()) == "DEFAULT") GTEST_SKIP() << "needs AVX2";
  for (const char* arch : {"resnet18", "resnet50"}) {
    at::manual_seed(7);
    const auto model = make_model({.arch = arch, .params = params("{zero_init_residual: true}")});
    EXPECT_EQ(weights_checksum(*model),
              torchvision_golden()["zero_init_residual_seed7"][arch].get<std::uint64_t>());
  }
}

TEST(ResNetTest, LogBiasInitialisesUniformClassProbabilities) {
  const auto model =
      make_model({.arch = "resnet18", .num_classes = 8, .params = params("{log_bias: true}")});
  const at::Tensor bias = model->parameters().back().tensor.detach();
  EXPECT_LE((bias.exp() - 1.0 / 8).abs().max().item<double>(), 1e-7);
}

TEST(ResNetTest, AcceptsAnyClassCount) {
  const auto model = make_model({.arch = "resnet18", .num_classes = 1});
  EXPECT_EQ(model->forward(make_batch(noise_tensor(1, {2, 3, 32, 32}))).sizes(),
            (std::vector<int64_t>{2, 1}));
}

TEST(ResNetTest, RefusesAnImpossibleClassCount) {
  EXPECT_THAT([] { (void)make_model({.arch = "resnet18", .num_classes = 0}); },
              ThrowsMessage<ConfigError>(Names("resnet18", "num_classes", 1, 0)));
}

TEST(ResNetTest, RefusesAnUnknownParameterWithAHint) {
  EXPECT_THAT(
      [] { (void)make_model({.arch = "resnet18", .params = params("{zero_init_residuals: 1}")}); },
      ThrowsMessage<ConfigError>(
          Names("model.params.zero_init_residuals", "'zero_init_residual'")));
}

/// Arch, BlurPool, channels_last.
using OutputCase = std::tuple<std::string, bool, bool>;
class OutputTest : public ::testing::TestWithParam<OutputCase> {
 protected:
  void SetUp() override {
    const auto& [arch, blurpool, channels_last] = GetParam();
    golden_ = torchvision_golden()["outputs"][arch + (blurpool ? "+blurpool" : "")];
    model_ = make_model({.arch = arch, .num_classes = 10, .blurpool = blurpool});
    fill_by_formula(*model_);
    model_->to(at::kCPU, channels_last);
    layout_ = channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  }

  nlohmann::json golden_;
  std::unique_ptr<Model> model_;
  at::MemoryFormat layout_ = at::MemoryFormat::Contiguous;
};

TEST_P(OutputTest, LogitsAndGradientsAreTorchvisions) {
  model_->train(false);
  const at::Tensor images = noise_tensor(1000, {4, 3, 72, 72}, 4).contiguous(layout_);
  EXPECT_LE(relative_error(model_->forward(make_batch(images)).detach(), golden_["eval_logits"]),
            2e-5);

  to_double(*model_);
  model_->train(true);
  const at::Tensor few = noise_tensor(1001, {2, 3, 40, 40}, 4).to(at::kDouble);
  const at::Tensor logits = model_->forward(make_batch(few.contiguous(layout_)));
  EXPECT_LE(relative_error(logits.detach(), golden_["train_logits"]), kFloat64Error);

  at::cross_entropy_loss(logits, at::tensor({3, 1}, at::kLong)).backward();
  const std::vector<NamedTensor> parameters = model_->parameters();
  const auto norms = golden_["gradient_norms"].get<std::vector<double>>();
  ASSERT_EQ(parameters.size(), norms.size());
  for (std::size_t i = 0; i < norms.size(); ++i) {
    const at::Tensor& gradient = parameters[i].tensor.grad();
    ASSERT_TRUE(gradient.defined()) << parameters[i].name;
    const auto norm = gradient.norm().item<double>();
    EXPECT_GT(norm, 0) << parameters[i].name;
    EXPECT_NEAR(norm, norms[i], kFloat64Error * norms[i]) << parameters[i].name;
  }
}

std::string output_name(const ::testing::TestParamInfo<OutputCase>& info) {
  const auto& [arch, blurpool, channels_last] = info.param;
  return arch + (blurpool ? "_blurpool" : "") + (channels_last ? "_channels_last" : "");
}

INSTANTIATE_TEST_SUITE_P(Models, OutputTest,
                         ::testing::Combine(::testing::Values("resnet18", "resnet50",
                                                              "resnext50_32x4d"),
                                            ::testing::Bool(), ::testing::Bool()),
                         output_name);

}  // namespace
}  // namespace precast::test
