#include "tools/app/resolved_run.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "framework/core/error.h"
#include "framework/core/system.h"
#include "tests/support/message_matchers.h"
#include "tools/app/rank_session.h"
#include "tools/app/train.h"

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
  EXPECT_EQ(requested_run(recipe).rank_batch_size(), 8);

  const int before = at::get_num_threads();
  ::unsetenv("OMP_NUM_THREADS");
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

TEST(ResolvedRunTest, OmpNumThreadsSetsTheComputeThreadsOfARank) {
  using Variables = std::map<std::string, std::string>;
  const auto threads = [](int local_world, const Variables& variables) {
    RankInfo info;
    info.local_world = local_world;
    return compute_threads(info, [&](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  };
  const int cores = usable_cores(), half = std::max(1, cores / 2);
  const std::string more = std::to_string(cores + 3);
  for (const std::string& text : {more, more + ",2"}) {
    EXPECT_EQ(threads(1, {{"OMP_NUM_THREADS", text}}).number, cores + 3);
    EXPECT_TRUE(threads(1, {{"OMP_NUM_THREADS", text}}).given);
  }
  for (const Variables& none :
       {Variables{}, Variables{{"OMP_NUM_THREADS", "0"}}, Variables{{"OMP_NUM_THREADS", "many"}},
        Variables{{"OMP_NUM_THREADS", std::to_string(half)}}}) {
    EXPECT_EQ(threads(2, none).number, half);
    EXPECT_FALSE(threads(2, none).given);
  }
  EXPECT_EQ(threads(2, {{"OMP_NUM_THREADS", "1"}}).number, 1);
}

TEST(ResolvedRunTest, AnEvaluationMayHaveMoreRanksThanAGlobalBatchHasSamples) {
  TrainConfig config;
  config.training.global_batch_size = 2;
  EXPECT_EQ(rank_batch_size(config, 2), 1);
  EXPECT_EQ(rank_batch_size(config, 3), 1);
  EXPECT_EQ(rank_batch_size(config, 4), 1);
}

TEST(ResolvedRunTest, OnlyTrainingOnACpuRefusesCudaGraphs) {
  Recipe recipe;
  recipe.config.training.device = "cpu";
  const int before = at::get_num_threads();
  for (const char* graphs : {"on", "step"}) {
    recipe.config.training.cuda_graphs = graphs;
    EXPECT_THAT([&] { static_cast<void>(resolve_run(recipe, RankInfo{})); },
                testing::ThrowsMessage<ConfigError>(test::Names("training.cuda_graphs", graphs)));
    EXPECT_NO_THROW(static_cast<void>(resolve_run(recipe, RankInfo{}, /*trains=*/false)));
  }
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

TEST(ResolvedRunTest, RanksOnGpusNeedOneEach) {
  EXPECT_EQ(gpu_problem("--ranks", "cuda", 2, 2, ""), "");
  EXPECT_EQ(gpu_problem("--ranks", "auto", 1, 2, ""), "");
  for (const char* device : {"cuda", "auto"})
    EXPECT_THAT(gpu_problem("--ranks", device, 8, 3, "hint"), test::Names("--ranks", 3, 8, "hint"));
  // Ranks on CPUs need no GPUs.
  EXPECT_EQ(gpu_problem("--ranks", "cpu", 8, 1, ""), "");
  EXPECT_EQ(gpu_problem("--ranks", "auto", 8, 0, ""), "");
  EXPECT_THAT(gpu_problem("--ranks", "cuda", 8, 0, ""), test::Names("training.device"));
}

TEST(ResolvedRunTest, AStartedRankNeedsAGpuForEachRankOfItsHost) {
  RankInfo info;
  info.world = 16;
  info.local_world = 8;
  info.local_rank = 3;
  EXPECT_EQ(gpu_problem(info, "cuda", 8), "");
  EXPECT_THAT(gpu_problem(info, "auto", 4), test::Names("ranks", 4, 8));
  EXPECT_EQ(gpu_problem(info, "cuda", 1), "") << "the launcher may give each rank its own GPU";
  EXPECT_EQ(gpu_problem(info, "cpu", 4), "");
  EXPECT_EQ(gpu_problem(info, "auto", 0), "");
  EXPECT_THAT(gpu_problem(info, "cuda", 0), test::Names("training.device"));
}

TEST(ResolvedRunTest, WithoutTheNumberOfRanksOnAHostARankOnlyNeedsItsOwnGpu) {
  // Two hosts with 8 GPUs each. RANK, WORLD_SIZE and LOCAL_RANK are set, but not LOCAL_WORLD_SIZE.
  RankInfo info;
  info.world = 16;
  info.local_world = 16;
  info.local_world_known = false;
  for (info.local_rank = 0; info.local_rank < 8; ++info.local_rank)
    EXPECT_EQ(gpu_problem(info, "cuda", 8), "") << info.local_rank;
  EXPECT_THAT(gpu_problem(info, "cuda", 8), test::Names("ranks", 8, 9));
}

TEST(ResolvedRunTest, TooFewGpusAreAnErrorOfTheEnvironment) {
  EXPECT_NO_THROW(check_gpus(""));
  try {
    check_gpus("why");
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::environment);
  }
}

TEST(ResolvedRunTest, TooFewGpusForARecipeNameItsKeyAndTheBatchToKeep) {
  Recipe recipe;
  TrainConfig& config = recipe.config;
  recipe.origins = {{"", {"r.yaml", 0, 0}}, {"dist.world_size", {"r.yaml", 3, 15}}};
  config.training.batch_size = 512;
  const std::string batch = "training.global_batch_size";
  EXPECT_EQ(gpu_problem(recipe, 8, 8), "");
  EXPECT_THAT(gpu_problem(recipe, 8, 1),
              test::Names("r.yaml:3:15", "dist.world_size", 8, "dist.world_size=1", batch, 4096));
  EXPECT_THAT(gpu_problem(recipe, 8, 1, /*trains=*/false), testing::Not(test::Names(batch)));
  // 3 ranks cannot divide 4096 samples equally.
  EXPECT_THAT(gpu_problem(recipe, 8, 3),
              testing::AllOf(test::Names("dist.world_size=3"), testing::Not(test::Names(batch))));
  config.training.global_batch_size = 4096;
  EXPECT_THAT(gpu_problem(recipe, 8, 1), testing::Not(test::Names(batch)));
  config.dist.nproc = "8";
  EXPECT_THAT(gpu_problem(recipe, 8, 2), test::Names("dist.nproc", "dist.nproc=2"));
  config.training.device = "cpu";
  EXPECT_EQ(gpu_problem(recipe, 8, 1), "");
}

TEST(ResolvedRunTest, ADryRunWithMoreRanksThanGpusFailsAfterThePlan) {
  const int gpus = usable_gpus();
  if (gpus == 0) GTEST_SKIP() << "no GPU that libtorch can use";
  const std::string nproc = "--dist.nproc=" + std::to_string(gpus + 1);
  testing::internal::CaptureStdout();
  EXPECT_THAT(
      [&] {
        static_cast<void>(run_train(
            {"--dry-run", "--json", "--train-samples=100000", "--training.device=cuda", nproc}));
      },
      testing::ThrowsMessage<DeviceError>(test::Names("dist.nproc", gpus, gpus + 1)));
  const std::string plan = testing::internal::GetCapturedStdout();
  EXPECT_EQ(nlohmann::json::parse(plan).at("world_size"), gpus + 1);
}

}  // namespace
}  // namespace precast::tools
