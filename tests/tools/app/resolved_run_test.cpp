#include "tools/app/resolved_run.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/system.h"
#include "tests/support/message_matchers.h"
#include "tools/app/rank_session.h"

namespace precast::tools {
namespace {

TEST(ResolvedRunTest, LoaderThreadsAreTheShareOfTheCoresWhateverTorchUses) {
  const int before = at::get_num_threads();
  // As with OMP_NUM_THREADS=1, which torchrun sets.
  at::set_num_threads(1);
  const int cores = usable_cores();
  Recipe recipe;
  EXPECT_EQ(ResolvedRun{.recipe = recipe}.loader_threads(), cores);
  const ResolvedRun two{.recipe = recipe, .world = 2, .local_world = 2};
  EXPECT_EQ(two.loader_threads(), std::max(1, cores / 2));
  const ResolvedRun gpus{.recipe = recipe, .device = at::kCUDA, .world = 2, .local_world = 2};
  EXPECT_EQ(gpus.loader_threads(), std::max(1, cores / 2 - 2));
  recipe.config.data.num_workers = 3;
  EXPECT_EQ(two.loader_threads(), 3);
  at::set_num_threads(before);
}

TEST(ResolvedRunTest, TheRanksThatJoinedReplaceThoseThatTheRecipeAsksFor) {
  Recipe recipe;
  recipe.config.training.distributed = 1;
  recipe.config.dist.world_size = 8;
  recipe.config.training.global_batch_size = 64;
  recipe.config.lr.lr = 0.1;
  recipe.config.lr.reference_batch_size = 256;
  recipe.config.training.device = "cpu";
  EXPECT_EQ(as_requested(recipe).rank_batch_size(), 8);

  const int before = at::get_num_threads();
  RankInfo info;
  info.world = 4;
  info.local_world = 2;
  const ResolvedRun run = resolve_run(recipe, info);
  EXPECT_EQ(run.world, 4);
  EXPECT_EQ(run.local_world, 2);
  EXPECT_EQ(run.rank_batch_size(), 16);
  EXPECT_EQ(run.global_batch_size(), 64);
  EXPECT_DOUBLE_EQ(run.peak_lr(), 0.1 * 64 / 256);
  EXPECT_EQ(at::get_num_threads(), std::max(1, usable_cores() / 2));
  EXPECT_EQ(recipe.config.dist.world_size, 8) << "the recipe must not change";
  at::set_num_threads(before);
}

TEST(ResolvedRunTest, OneRankForEachGpuMustSuitTheRecipe) {
  TrainConfig config;
  config.dist.nproc = "auto";
  config.training.global_batch_size = 9;
  EXPECT_EQ(ranks_to_launch(config, RankInfo{}, /*trains=*/true, /*gpus=*/0), 1);
  EXPECT_EQ(ranks_to_launch(config, RankInfo{}, /*trains=*/true, /*gpus=*/3), 3);
  EXPECT_EQ(ranks_to_launch(config, RankInfo{}, /*trains=*/false, /*gpus=*/2), 2);
  EXPECT_THAT(
      [&] { static_cast<void>(ranks_to_launch(config, RankInfo{}, /*trains=*/true, /*gpus=*/2)); },
      testing::ThrowsMessage<ConfigError>(test::Names("training.global_batch_size", 2, 9)));
}

}  // namespace
}  // namespace precast::tools
