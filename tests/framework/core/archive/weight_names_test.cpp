#include "framework/core/archive/weight_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/core/error.h"
#include "tests/support/message_matchers.h"

namespace precast {
namespace {

using test::Names;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TorchvisionNames renamed(const std::vector<std::string>& names) {
  std::vector<TensorRecord> records;
  for (const std::string& name : names) {
    records.push_back({name, DType::f32, {static_cast<std::int64_t>(records.size())}, {}});
  }
  return torchvision_names(records, "weights.pt");
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

TEST(TorchvisionNamesTest, TwoTensorsOfOneNameAreRefused) {
  EXPECT_THAT(
      [] {
        renamed({"a.weight", "a.conv.weight", "a.blur_filter"});
      },
      ::testing::ThrowsMessage<CheckpointError>(Names("weights.pt", "'a.weight'")));
}

}  // namespace
}  // namespace precast
