#include "framework/core/archive/weight_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/error.h"
#include "tests/support/message_matchers.h"

namespace precast {
namespace {

using test::Names;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TorchvisionNames renamed(const std::vector<std::string>& names,
                         const std::optional<WeightsSpec>& spec = std::nullopt) {
  std::vector<TensorRecord> records;
  for (const std::string& name : names) {
    records.push_back({name, DType::f32, {static_cast<std::int64_t>(records.size())}, {}});
  }
  return torchvision_names(records, "weights.pt", spec);
}

std::vector<std::string> names_of(const TorchvisionNames& result) {
  std::vector<std::string> names;
  for (const TensorRecord& record : result.records) names.push_back(record.name);
  return names;
}

TEST(TorchvisionNamesTest, AntialiasedConvolutionsLoseTheirWrapper) {
  const TorchvisionNames result =
      renamed({"conv1.weight", "layer2.0.conv1.blur_filter", "layer2.0.conv1.conv.weight",
               "layer2.0.conv1.conv.bias", "layer2.0.downsample.0.conv.weight",
               "layer2.0.downsample.0.blur_filter", "fc.weight"});
  EXPECT_THAT(names_of(result),
              ElementsAre("conv1.weight", "layer2.0.conv1.weight", "layer2.0.conv1.bias",
                          "layer2.0.downsample.0.weight", "fc.weight"));
  EXPECT_EQ(result.renamed, 3U);
  EXPECT_THAT(result.left_out,
              ElementsAre("layer2.0.conv1.blur_filter", "layer2.0.downsample.0.blur_filter"));
  EXPECT_THAT(result.records[1].shape, ElementsAre(2)) << "each keeps its own tensor";
}

TEST(TorchvisionNamesTest, APartThatIsOnlyCalledConvKeepsItsName) {
  const std::vector<std::string> names = {"block.conv.weight", "conv.weight", "a.conv.weights",
                                          "blur_filter", "x.blur_filters"};
  const TorchvisionNames result = renamed(names);
  EXPECT_EQ(names_of(result), names);
  EXPECT_EQ(result.renamed, 0U);
  EXPECT_THAT(result.left_out, IsEmpty());
}

TEST(TorchvisionNamesTest, OnlyLayersThatTheSpecListsHaveAWrapper) {
  const WeightsSpec spec = {.arch = "own", .blurred = {{"b", 16}}};
  const TorchvisionNames result =
      renamed({"a.conv.weight", "a.blur_filter", "b.conv.weight", "b.blur_filter"}, spec);
  EXPECT_THAT(names_of(result), ElementsAre("a.conv.weight", "a.blur_filter", "b.weight"));
  EXPECT_THAT(result.left_out, ElementsAre("b.blur_filter"));
}

TEST(TorchvisionNamesTest, TwoTensorsOfOneNameAreRefused) {
  EXPECT_THAT(
      [] {
        renamed({"a.weight", "a.conv.weight", "a.blur_filter"});
      },
      ::testing::ThrowsMessage<CheckpointError>(Names("weights.pt", "'a.weight'")));
}

/// Renames tensors of zeros with the given names and shapes.
class FfcvNamesTest : public ::testing::Test {
 protected:
  FfcvNames renamed(const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& tensors,
                    const std::map<std::string, std::int64_t>& blurred) {
    std::vector<TensorRecord> records;
    for (const auto& [name, shape] : tensors) {
      records.push_back({name, DType::f32, shape,
                         std::as_bytes(std::span(zeros_)).first(*byte_count(DType::f32, shape))});
    }
    return ffcv_names(records, blurred, "weights.pt");
  }
  std::vector<float> zeros_ = std::vector<float>(4096);
};

TEST_F(FfcvNamesTest, BlurredLayersGetTheWrapperAndItsFilter) {
  const FfcvNames result = renamed({{"conv1.weight", {8, 3, 3, 3}},
                                    {"layer2.0.conv1.weight", {4, 16, 3, 3}},
                                    {"layer2.0.conv1.bias", {4}},
                                    {"layer2.0.conv1.se.fc1.weight", {2, 4}},
                                    {"grouped.weight", {8, 4, 1, 1}}},
                                   {{"layer2.0.conv1", 16}, {"grouped", 8}});
  std::vector<std::string> names;
  for (const TensorRecord& record : result.records) names.push_back(record.name);
  EXPECT_THAT(
      names, ElementsAre("conv1.weight", "layer2.0.conv1.blur_filter", "layer2.0.conv1.conv.weight",
                         "layer2.0.conv1.conv.bias", "layer2.0.conv1.se.fc1.weight",
                         "grouped.blur_filter", "grouped.conv.weight"));
  EXPECT_EQ(result.renamed, 3U);
  EXPECT_THAT(result.records[1].shape, ElementsAre(16, 1, 3, 3));
  EXPECT_THAT(result.records[5].shape, ElementsAre(8, 1, 3, 3));
  for (const std::size_t filter : {1, 5}) {
    EXPECT_TRUE(is_blur_filter(result.records[filter]));
    EXPECT_EQ(result.records[filter].bytes.size(),
              *byte_count(DType::f32, result.records[filter].shape));
  }
  EXPECT_THAT(filtered_layers(result.records), ElementsAre("layer2.0.conv1", "grouped"));
  std::vector<std::string> undone = names_of(torchvision_names(result.records, "weights.pt"));
  EXPECT_THAT(undone, ElementsAre("conv1.weight", "layer2.0.conv1.weight", "layer2.0.conv1.bias",
                                  "layer2.0.conv1.se.fc1.weight", "grouped.weight"));
}

TEST_F(FfcvNamesTest, ALayerWithoutAWeightForSoManyChannelsIsRefused) {
  const std::vector<std::pair<std::string, std::vector<std::int64_t>>> tensors = {
      {"a.weight", {4, 16, 3, 3}}, {"fc.weight", {4, 16}}, {"none.weight", {0, 16, 3, 3}}};
  const std::vector<std::pair<std::string, std::int64_t>> wrong = {
      {"b", 16}, {"a", 8}, {"a", 48}, {"a", INT64_MAX}, {"a", 0}, {"fc", 16}, {"none", 16}};
  for (const auto& [layer, channels] : wrong) {
    EXPECT_THAT(
        [&] {
          (void)renamed(tensors, {{layer, channels}});
        },
        ::testing::ThrowsMessage<CheckpointError>(
            Names("weights.pt", "'" + layer + ".weight'", channels)));
  }
}

TEST(BlurFilterTest, OnlyTheFilterOfFfcvImagenetIsOne) {
  const auto is_filter = [](DType dtype, const auto& values) {
    return is_blur_filter({"a.blur_filter", dtype, {1, 1, 3, 3}, std::as_bytes(std::span(values))});
  };
  std::vector<double> wide = {1, 2, 1, 2, 4, 2, 1, 2, 1};
  for (double& value : wide) value /= 16;
  std::vector<float> single(wide.begin(), wide.end());
  EXPECT_TRUE(is_filter(DType::f64, wide));
  EXPECT_TRUE(is_filter(DType::f32, single));
  const std::vector<std::uint16_t> half = {0x2C00, 0x3000, 0x2C00, 0x3000, 0x3400,
                                           0x3000, 0x2C00, 0x3000, 0x2C00};
  EXPECT_TRUE(is_filter(DType::f16, half));
  EXPECT_FALSE(is_filter(DType::bf16, half));
  single[8] = 1;
  EXPECT_FALSE(is_filter(DType::f32, single));
}

}  // namespace
}  // namespace precast
