#include "tools/app/frozen_parameters.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/error.h"
#include "tests/support/message_matchers.h"
#include "tools/app/registries.h"
#include "tools/app/resolved_run.h"

namespace precast::tools {
namespace {

using testing::ElementsAre;

/// A model with parameters of these names.
class NamedParameters final : public ImageModel {
 public:
  explicit NamedParameters(const std::vector<std::string>& names) {
    for (const std::string& name : names)
      parameters_.push_back({name, at::zeros({1}).requires_grad_()});
    state_ = parameters_;
  }
  /// Registers the first parameter under another name, too.
  void tie(const std::string& name) {
    state_.push_back({name, parameters_.front().tensor.detach()});
  }
  at::Tensor classify(const at::Tensor& images) override { return images; }
  [[nodiscard]] std::vector<NamedTensor> parameters() const override { return parameters_; }
  [[nodiscard]] std::vector<NamedTensor> state() const override { return state_; }
  void train(bool /*training*/) override {}
  void to(at::Device /*device*/, bool /*channels_last*/) override {}

 private:
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> state_;
};

TEST(FrozenParametersTest, ALayerOfADescribedModelIsOnePosition) {
  Diagnostics diagnostics;
  std::string layers = "linear: {out: 4}";
  for (int i = 1; i < 13; ++i) layers += ", linear: {out: 4}";
  const ConfigNode params = parse_override("{features: 4, layers: [" + layers + ", linear]}",
                                           {"test", 1, 1}, diagnostics);
  diagnostics.throw_if_errors();
  const auto model =
      make_model(make_registries().models, {.arch = "layers", .num_classes = 2, .params = params});
  ASSERT_EQ(model->parameters().size(), 28U);
  freeze_parameters(*model, {"1"});
  EXPECT_THAT(frozen_parameters(*model), ElementsAre("1.weight", "1.bias"));
  freeze_parameters(*model, {"0.", "12.bias"});
  EXPECT_THAT(frozen_parameters(*model),
              ElementsAre("0.weight", "0.bias", "1.weight", "1.bias", "12.bias"));
}

TEST(FrozenParametersTest, ABlockOfAResNetIsNotTheBlocksWhoseNumbersBeginWithItsOwn) {
  // Some of the 23 blocks of resnet101's layer3.
  NamedParameters model({"conv1.weight", "layer3.1.conv1.weight", "layer3.1.bn1.bias",
                         "layer3.10.conv1.weight", "layer3.11.bn1.bias", "fc.weight"});
  for (const std::string part : {"layer3.1", "layer3.1."}) {
    freeze_parameters(model, {part});
    EXPECT_THAT(frozen_parameters(model),
                ElementsAre("layer3.1.conv1.weight", "layer3.1.bn1.bias"));
  }
  for (const std::string part : {"layer", "layer3.1.conv", "conv1.weight.", "", "."}) {
    EXPECT_THAT([&] { freeze_parameters(model, {part}); },
                testing::ThrowsMessage<ConfigError>(
                    test::Names("training.freeze", "'conv1.weight'", "'" + part + "'")));
  }
  EXPECT_THROW(freeze_parameters(model, {"conv1", "layer3", "fc"}), ConfigError);
}

TEST(FrozenParametersTest, EachNameOfATiedParameterFreezesIt) {
  for (const std::string part : {"head", "head.weight", "embedding"}) {
    NamedParameters model({"embedding.weight", "body.weight"});
    model.tie("head.weight");
    freeze_parameters(model, {part});
    EXPECT_THAT(frozen_parameters(model), ElementsAre("embedding.weight")) << part;
  }
}

TEST(FrozenParametersTest, TheFirstNamesAndTheirNumberAreShown) {
  EXPECT_EQ(frozen_text({"a"}), "1 tensor: a");
  EXPECT_EQ(frozen_text({"a", "b", "c", "d", "e"}), "5 tensors: a, b, c and 2 more");
}

}  // namespace
}  // namespace precast::tools
