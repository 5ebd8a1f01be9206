#include "framework/engine/weights.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/ScalarType.h>
#include <gtest/gtest.h>

#include "framework/core/archive/weights_file.h"
#include "framework/core/error.h"
#include "framework/engine/state_archive.h"
#include "tests/support/fake_parts.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::engine {
namespace {

using test::LinearModel;
using test::Names;
using testing::ThrowsMessage;

class WeightsTest : public ::testing::Test {
 protected:
  /// A weights file with one float tensor of each name and size.
  std::filesystem::path file_with(
      const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& tensors) {
    std::vector<TensorRecord> records;
    for (const auto& [name, shape] : tensors)
      records.push_back(
          {name, DType::f32, shape, std::as_bytes(std::span(values_).first(count(shape)))});
    save_weights(folder_ / "w.safetensors", records);
    return folder_ / "w.safetensors";
  }
  static std::size_t count(const std::vector<std::int64_t>& shape) {
    std::size_t all = 1;
    for (const std::int64_t side : shape) all *= static_cast<std::size_t>(side);
    return all;
  }
  test::TemporaryFolder folder_;
  std::vector<float> values_ = std::vector<float>(64, 1.5F);
};

TEST_F(WeightsTest, BothFormatsComeBackAsTheyWere) {
  LinearModel model(4), from_pt(4), from_safetensors(4);
  model.weight.detach().fill_(0.25);
  model.steps_seen.fill_(77);
  save_model_weights(model, folder_ / "final_weights");
  load_model_weights(from_pt, folder_ / "final_weights.pt");
  load_model_weights(from_safetensors, folder_ / "final_weights.safetensors");
  for (const LinearModel* loaded : {&from_pt, &from_safetensors}) {
    EXPECT_TRUE(loaded->weight.equal(model.weight));
    EXPECT_EQ(loaded->steps_seen.item<std::int64_t>(), 77);
    EXPECT_TRUE(loaded->weight.requires_grad());
  }
}

TEST_F(WeightsTest, AllThatDoesNotFitIsListedAndTheModelKeepsItsWeights) {
  LinearModel model(4);
  EXPECT_THAT(
      [&] {
        load_model_weights(model, file_with({{"bias", {4}}, {"extra", {2}}}));
      },
      ThrowsMessage<CheckpointError>(Names("(1): weight", "(2): bias, extra")));
  EXPECT_THAT(
      [&] {
        load_model_weights(model, file_with({{"weight", {5, 3}}}));
      },
      ThrowsMessage<CheckpointError>(Names("weight", "[4, 3]", "[5, 3]")));
  EXPECT_TRUE(model.weight.equal(at::zeros({4, 3})));
}

TEST_F(WeightsTest, OfWeightsOfAnotherNetworkTheFirstNamesAndTheNumberAreShown) {
  LinearModel model(4);
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> tensors;
  for (int i = 10; i < 60; ++i) tensors.push_back({"layer" + std::to_string(i), {2}});
  try {
    load_model_weights(model, file_with(tensors));
    FAIL();
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), Names("(50): layer10, layer11", 46));
    EXPECT_LT(std::string(error.what()).size(), 300U);
  }
}

TEST_F(WeightsTest, ALastLayerForAnotherNumberOfClassesCanKeepWhatWasDrawn) {
  LinearModel model(4);
  model.weight.detach().fill_(7);
  const auto file = file_with({{"weight", {10, 3}}});
  EXPECT_THROW(load_model_weights(model, file), CheckpointError);
  for (const std::int64_t in_file : {10, 0}) {  // 0: not stated in the file
    load_model_weights(model, file, NumClasses{.file = in_file, .model = 4});
    EXPECT_TRUE(model.weight.equal(at::full({4, 3}, 7.0F)));
  }
  EXPECT_THROW(load_model_weights(model, file_with({{"weight", {10, 2}}}),
                                  NumClasses{.file = 10, .model = 4}),
               CheckpointError);
}

TEST_F(WeightsTest, OnlyTensorsWithTheTwoNumbersOfClassesAreALastLayer) {
  class Masks final : public ImageModel {
   public:
    at::Tensor classify(const at::Tensor& images) override { return images; }
    [[nodiscard]] std::vector<NamedTensor> parameters() const override {
      return {{"0.weight", hidden}, {"1.weight", weight}, {"1.bias", bias}};
    }
    [[nodiscard]] std::vector<NamedTensor> state() const override { return parameters(); }
    void train(bool /*training*/) override {}
    void to(at::Device /*device*/, bool /*channels_last*/) override {}
    at::Tensor hidden = at::zeros({6, 1, 1, 1});
    at::Tensor weight = at::full({3, 6, 1, 1}, 7.0F);
    at::Tensor bias = at::full({3}, 7.0F);
  } model;
  const NumClasses classes{.file = 4, .model = 3};
  load_model_weights(
      model, file_with({{"0.weight", {6, 1, 1, 1}}, {"1.weight", {4, 6, 1, 1}}, {"1.bias", {4}}}),
      classes);
  EXPECT_TRUE(model.hidden.equal(at::full({6, 1, 1, 1}, 1.5F)));
  EXPECT_TRUE(model.weight.equal(at::full({3, 6, 1, 1}, 7.0F)));
  EXPECT_TRUE(model.bias.equal(at::full({3}, 7.0F)));
  // The hidden layer has another width, and the last layer a third number of classes.
  EXPECT_THROW(
      load_model_weights(
          model,
          file_with({{"0.weight", {5, 1, 1, 1}}, {"1.weight", {4, 6, 1, 1}}, {"1.bias", {4}}}),
          classes),
      CheckpointError);
  EXPECT_THROW(
      load_model_weights(
          model,
          file_with({{"0.weight", {6, 1, 1, 1}}, {"1.weight", {5, 6, 1, 1}}, {"1.bias", {5}}}),
          classes),
      CheckpointError);
}

TEST_F(WeightsTest, NamesOfThePublishedScriptAndOfDdpAreUnderstood) {
  class Antialiased final : public ImageModel {
   public:
    at::Tensor classify(const at::Tensor& images) override { return images; }
    [[nodiscard]] std::vector<NamedTensor> parameters() const override {
      return {{"layer2.0.conv1.weight", weight}};
    }
    [[nodiscard]] std::vector<NamedTensor> state() const override { return parameters(); }
    void train(bool /*training*/) override {}
    void to(at::Device /*device*/, bool /*channels_last*/) override {}
    at::Tensor weight = at::zeros({2, 2});
  } model;
  load_model_weights(model, file_with({{"module.layer2.0.conv1.conv.weight", {2, 2}},
                                       {"module.layer2.0.conv1.blur_filter", {1}}}));
  EXPECT_TRUE(model.weight.equal(at::full({2, 2}, 1.5)));
}

TEST_F(WeightsTest, AModelsOwnModuleMayHaveTheNameOfDdpsPrefix) {
  class Wrapper final : public ImageModel {
   public:
    at::Tensor classify(const at::Tensor& images) override { return images; }
    [[nodiscard]] std::vector<NamedTensor> parameters() const override {
      return {{"module.fc.weight", weight}, {"scale", scale}};
    }
    [[nodiscard]] std::vector<NamedTensor> state() const override { return parameters(); }
    void train(bool /*training*/) override {}
    void to(at::Device /*device*/, bool /*channels_last*/) override {}
    at::Tensor weight = at::full({2, 2}, 0.5F);
    at::Tensor scale = at::full({1}, 2.0F);
  } model, loaded;
  save_model_weights(model, folder_ / "w");
  for (const char* name : {"w.pt", "w.safetensors"}) {
    loaded.weight.zero_();
    load_model_weights(loaded, folder_ / name);
    EXPECT_TRUE(loaded.weight.equal(model.weight)) << name;
  }
}

TEST_F(WeightsTest, TheSpecIsStoredAndBlurredLayersGetFfcvImagenetsNames) {
  class Convolution final : public ImageModel {
   public:
    at::Tensor classify(const at::Tensor& images) override { return images; }
    [[nodiscard]] std::vector<NamedTensor> parameters() const override {
      return {{"layer2.0.conv1.weight", weight}};
    }
    [[nodiscard]] std::vector<NamedTensor> state() const override { return parameters(); }
    void train(bool /*training*/) override {}
    void to(at::Device /*device*/, bool /*channels_last*/) override {}
    at::Tensor weight = at::full({2, 16, 1, 1}, 0.5F);
  } model, loaded;
  loaded.weight.zero_();
  const WeightsSpec spec = {
      .arch = "a", .blurpool = true, .blurred = {{"layer2.0.conv1", 16}}, .num_classes = 2};
  save_model_weights(model, folder_ / "w", spec);
  for (const char* name : {"w.pt", "w.safetensors"}) {
    const WeightsFile file = load_weights(folder_ / name);
    EXPECT_EQ(spec_of(file), spec);
    ASSERT_EQ(file.records().size(), 2U);
    EXPECT_EQ(file.records()[0].name, "layer2.0.conv1.blur_filter");
    EXPECT_EQ(file.records()[1].name, "layer2.0.conv1.conv.weight");
    load_model_weights(loaded, folder_ / name);
    EXPECT_TRUE(loaded.weight.equal(model.weight));
  }
}

TEST_F(WeightsTest, AModelsOwnTensorMayBeCalledBlurFilter) {
  class Filtered final : public ImageModel {
   public:
    at::Tensor classify(const at::Tensor& images) override { return images; }
    [[nodiscard]] std::vector<NamedTensor> parameters() const override {
      return {{"a.conv.weight", weight}};
    }
    [[nodiscard]] std::vector<NamedTensor> state() const override {
      return {{"a.conv.weight", weight}, {"a.blur_filter", filter}};
    }
    void train(bool /*training*/) override {}
    void to(at::Device /*device*/, bool /*channels_last*/) override {}
    at::Tensor weight = at::full({2, 16, 1, 1}, 0.5F);
    at::Tensor filter = at::full({3}, 2.0F);
  } model, loaded;
  save_model_weights(model, folder_ / "w", WeightsSpec{.arch = "own", .num_classes = 2});
  for (const char* name : {"w.pt", "w.safetensors"}) {
    loaded.weight.zero_();
    loaded.filter.zero_();
    load_model_weights(loaded, folder_ / name);
    EXPECT_TRUE(loaded.weight.equal(model.weight)) << name;
    EXPECT_TRUE(loaded.filter.equal(model.filter)) << name;
  }
}

TEST(StorableTest, WhatFilesCannotStoreIsNamed) {
  const at::Tensor weight = at::zeros({2});
  EXPECT_NO_THROW(check_storable({{"weight", weight}, {"mask", at::zeros({2}, at::kBool)}}));
  for (const at::ScalarType type : {at::kComplexFloat, at::kUInt16, at::kFloat8_e4m3fn}) {
    EXPECT_THAT(
        [&] {
          check_storable({{"weight", weight}, {"other", at::empty({2}, type)}});
        },
        ThrowsMessage<ConfigError>(Names("'other'", c10::toString(type))));
  }
  EXPECT_THAT(
      [&] {
        check_storable({{"weight", weight}, {"weight", weight}});
      },
      ThrowsMessage<ConfigError>(Names("'weight'")));
}

TEST_F(WeightsTest, AMissingBatchCountIsZero) {
  LinearModel model(4);
  model.steps_seen.fill_(5);
  load_model_weights(model, file_with({{"weight", {4, 3}}}));
  EXPECT_EQ(model.steps_seen.item<std::int64_t>(), 0);
}

}  // namespace
}  // namespace precast::engine
