#include "tools/app/kernel_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/detail/fused_norm.h"
#include "tests/support/message_matchers.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;
using test::Names;
using ::testing::IsEmpty;

const models::FusedLayerCounts kNorms{
    .fused = 49, .reference = {{"ghost_batch_norm", 4}}, .blurs = 6, .max_pools = 1, .stems = 1};

class KernelChoiceTest : public ::testing::Test {
 protected:
  [[nodiscard]] ordered_json described(const std::string& setting, at::Device device,
                                       bool channels_last = true,
                                       const models::FusedLayerCounts& norms = kNorms) {
    recipe_.config.model.kernels = setting;
    return described(device, uses_fused_kernels({.recipe = recipe_, .device = device}),
                     channels_last, norms);
  }
  [[nodiscard]] ordered_json described(at::Device device, bool fused, bool channels_last,
                                       const models::FusedLayerCounts& norms) {
    TrainPlan plan;
    plan.channels_last = channels_last;
    plan.model.fused_kernels = fused;
    return describe_kernels({.recipe = recipe_, .device = device}, plan, norms);
  }
  /// The description with `kernels: auto` on a GPU on which the kernels have been tested.
  [[nodiscard]] ordered_json fused_by_default(bool channels_last = true) {
    recipe_.config.model.kernels = "auto";
    return described(at::kCUDA, /*fused=*/true, channels_last, kNorms);
  }

 private:
  Recipe recipe_;
};

TEST_F(KernelChoiceTest, CountsFusedNormsAndTheReasonsForTheOthers) {
  if (!models::detail::has_fused_kernels()) GTEST_SKIP() << "a build without CUDA";
  const ordered_json found = described("fused", at::kCUDA);
  EXPECT_EQ(found, (ordered_json{{"setting", "fused"},
                                 {"fused", 49},
                                 {"reference", {{"ghost_batch_norm", 4}}},
                                 {"blurs", 6},
                                 {"max_pools", 1},
                                 {"stems", 1}}));
  EXPECT_THAT(kernels_text(found),
              Names(49, 53, 4, "ghost_batch_norm", "1 max pool", "6 blurs", "1 RGB convolution"));
  EXPECT_EQ(kernels_used(found), "fused");
  EXPECT_THAT(kernels_warning(found), IsEmpty());
}

TEST_F(KernelChoiceTest, FusedKernelsThatNothingUsesAreAWarningWithTheReason) {
  EXPECT_EQ(described("fused", at::kCPU).at("fused"), 0);
  EXPECT_THAT(kernels_warning(described("fused", at::kCPU)), Names("model.kernels", 53, "CPU"));
  EXPECT_EQ(kernels_used(described("fused", at::kCPU)), "reference");
  EXPECT_THAT(kernels_warning(described("fused", at::kCPU, true, {})),
              Names("model.kernels", "BatchNorm2d"));
  if (!models::detail::has_fused_kernels()) return;
  // Blurs and max pools are fused even if norms are not.
  for (const models::FusedLayerCounts& some :
       {models::FusedLayerCounts{.reference = {{"r", 2}}, .blurs = 6},
        models::FusedLayerCounts{.reference = {}, .stems = 1}})
    EXPECT_THAT(kernels_warning(described("fused", at::kCUDA, true, some)), IsEmpty());
  EXPECT_THAT(kernels_warning(described("fused", at::kCUDA, /*channels_last=*/false)),
              Names("model.kernels", 53, "training.channels_last"));
  EXPECT_THAT(kernels_warning(described("fused", at::kCUDA, true, {.reference = {{"r", 2}}})),
              Names("2: r"));
}

TEST_F(KernelChoiceTest, FusedKernelsOfOtherPartsAreWarningsOnACpu) {
  Recipe recipe;
  recipe.resolved = {{"loss.kernels", "fused"}, {"optimizer.kernels", "auto"}};
  EXPECT_THAT(part_kernels_warnings({.recipe = recipe, .device = at::kCPU}),
              testing::ElementsAre(Names("loss.kernels", "CPU")));
  recipe.resolved = {{"optimizer.kernels", "fused"}};
  EXPECT_THAT(part_kernels_warnings({.recipe = recipe, .device = at::kCPU}),
              testing::ElementsAre(Names("optimizer.kernels", "CPU")));
  if (!models::detail::has_fused_kernels()) return;
  EXPECT_THAT(part_kernels_warnings({.recipe = recipe, .device = at::kCUDA}), IsEmpty());
}

TEST_F(KernelChoiceTest, AutoCountsFusedNormsWithoutAWarning) {
  if (!models::detail::has_fused_kernels()) GTEST_SKIP() << "a build without CUDA";
  const ordered_json found = fused_by_default();
  EXPECT_EQ(found.at("setting"), "auto");
  EXPECT_EQ(found.at("fused"), 49);
  EXPECT_THAT(kernels_text(found), Names(49, 53, "1 max pool"));
  EXPECT_THAT(kernels_warning(found), IsEmpty());
  const ordered_json nchw = fused_by_default(/*channels_last=*/false);
  EXPECT_EQ(nchw.at("fused"), 0);
  EXPECT_THAT(kernels_text(nchw), Names("auto", 53, "training.channels_last"));
  EXPECT_THAT(kernels_warning(nchw), IsEmpty());
}

TEST_F(KernelChoiceTest, APlanForAnotherHostNamesTheGpusWithFusedKernels) {
  if (!models::detail::has_fused_kernels()) GTEST_SKIP() << "a build without CUDA";
  if (usable_gpus() > 0) GTEST_SKIP() << "a host with a GPU";
  const ordered_json found = described("auto", at::kCUDA);
  EXPECT_EQ(found.at("depends_on_gpu"), true);
  EXPECT_THAT(kernels_text(found), Names("fused", "9.0", "reference"));
  EXPECT_FALSE(described("reference", at::kCUDA).contains("depends_on_gpu"));
  EXPECT_FALSE(described("auto", at::kCPU).contains("depends_on_gpu"));
}

TEST_F(KernelChoiceTest, TheReferenceNeedsNoWarning) {
  for (const char* setting : {"auto", "reference"}) {
    const ordered_json found = described(setting, at::kCPU);
    EXPECT_EQ(found.at("fused"), 0);
    EXPECT_EQ(found.at("reference"), ordered_json::object());
    EXPECT_THAT(kernels_text(found), Names("reference"));
    EXPECT_THAT(kernels_warning(found), IsEmpty());
  }
}

}  // namespace
}  // namespace precast::tools
