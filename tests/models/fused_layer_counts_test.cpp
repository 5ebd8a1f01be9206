#include "models/detail/fused_layer_counts.h"

#include <gtest/gtest.h>

#include <utility>

#include "framework/api/single_rank.h"
#include "tests/models/golden_model.h"

namespace precast::test {
namespace {

/// The layer counts of a network with `model.kernels: fused`. Counting needs no device.
models::FusedLayerCounts norms(ModelSpec spec, const std::string& yaml = "{}") {
  spec.fused_kernels = true;
  spec.params = test::params(yaml);
  return models::fused_layer_counts(*make_model(spec));
}

std::int64_t others(const models::FusedLayerCounts& norms) {
  std::int64_t sum = 0;
  for (const auto& [reason, count] : norms.reference) sum += count;
  return sum;
}

TEST(NormKernelsTest, AllNormsOfAResNetAreFused) {
  for (const auto& [arch, fused] : {std::pair{"resnet18", 20}, std::pair{"resnet50", 53}}) {
    const models::FusedLayerCounts found = norms({.arch = arch});
    EXPECT_EQ(found.fused, fused) << arch;
    EXPECT_EQ(others(found), 0) << arch;
  }
}

TEST(NormKernelsTest, MethodsThatNeedSeparateOpsAreNamed) {
  const auto rank = make_single_rank();
  const models::FusedLayerCounts synced =
      norms({.arch = "resnet18", .batch_norm_ranks = rank.get()});
  EXPECT_EQ(synced.fused, 0);
  EXPECT_EQ(synced.reference.at("dist.sync_bn"), 20);
  const models::FusedLayerCounts ghosts = norms({.arch = "resnet18", .ghost_batch_size = 16});
  EXPECT_EQ(ghosts.reference.at("ghost_batch_norm"), 20);
}

TEST(NormKernelsTest, DescribedNormsAreFused) {
  const models::FusedLayerCounts found =
      norms({.arch = "layers"},
            "{layers: [conv: {out: 8}, bn, relu, residual: {layers: [conv: {out: 8}, bn]}, bn, "
            "gelu, relu, global_avg_pool, flatten, linear]}");
  EXPECT_EQ(found.fused, 3);
  EXPECT_EQ(others(found), 0);
}

TEST(NormKernelsTest, ABlurBeforeAPointwiseConvolutionIsFusedOnlyWithStrideTwo) {
  const auto blurs = [](const std::string& conv) {
    return norms({.arch = "layers", .blurpool = true}, "{layers: [conv: {out: 16}, conv: " + conv +
                                                           ", global_avg_pool, flatten, linear]}")
        .blurs;
  };
  EXPECT_EQ(blurs("{out: 8, kernel: 1, stride: 2}"), 1);
  EXPECT_EQ(blurs("{out: 8, kernel: 1, stride: 3}"), 0);
  EXPECT_EQ(blurs("{out: 8, kernel: 1, stride: 3, padding: 1}"), 1);
  EXPECT_EQ(blurs("{out: 8, kernel: 3, stride: 3}"), 1);
}

}  // namespace
}  // namespace precast::test
