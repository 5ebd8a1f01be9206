// Runs with losses or gradients that are not finite (training.on_nonfinite).
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/core/archive/checkpoint_folder.h"
#include "framework/core/error.h"
#include "framework/engine/train_step.h"
#include "recipes/register.h"
#include "tests/framework/engine/resumed_run.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_ranks.h"

namespace precast::engine {
namespace {

using testing::ElementsAre;

/// The number of skipped steps in the record of each epoch.
std::vector<std::int64_t> skipped_steps_of_epochs(const test::MemorySink& sink) {
  std::vector<std::int64_t> skipped;
  for (const std::string& record : sink.records) {
    const auto parsed = nlohmann::json::parse(record);
    if (parsed.contains("train_loss")) skipped.push_back(parsed.at("skipped_steps"));
  }
  return skipped;
}

TEST_P(ResumeTest, ANumberThatIsNoneEndsTheRunAndIsInNoCheckpoint) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  try {
    static_cast<void>(run(folder.path(), sink, {.nan_at_step = 7}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::diverged);
  }
  EXPECT_GT(sink.records.size(), 0U);
  EXPECT_EQ(sink.flushed, sink.records.size());
  const auto latest = latest_valid_checkpoint(folder.path());
  ASSERT_TRUE(latest);
  EXPECT_EQ(latest->step, kSteps);
}

TEST_P(ResumeTest, ASkippedStepLeavesNothingBehind) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  const Outcome skipped = run(folder.path(), sink, {.nan_at_step = 7}, NonFinitePolicy::skip);
  EXPECT_TRUE(skipped.finished);
  for (const auto& [name, values] : skipped.tensors) {
    for (const float value : values) ASSERT_TRUE(std::isfinite(value)) << name;
  }
}

TEST_P(ResumeTest, SkippedStepsAreThoseOfAllItsParts) {
  for (const std::int64_t stop : {kNever, std::int64_t{5}, std::int64_t{6}, std::int64_t{7},
                                  std::int64_t{8}, std::int64_t{9}, std::int64_t{12}}) {
    SCOPED_TRACE(stop);
    const test::TemporaryFolder folder;
    test::MemorySink sink;
    Outcome outcome =
        run(folder.path(), sink, {.stop_at_step = stop, .nan_at_step = 7}, NonFinitePolicy::skip);
    EXPECT_EQ(outcome.finished, stop == kNever);
    if (!outcome.finished)
      outcome = run(folder.path(), sink, {.nan_at_step = 7}, NonFinitePolicy::skip);
    EXPECT_THAT(skipped_steps_of_epochs(sink), ElementsAre(0, 1, 0));
    EXPECT_EQ(outcome.skipped_steps, 1);
  }
}

TEST_P(ResumeTest, SkippedStepsCountFromZeroAfterAnEarlierVersionsCheckpoint) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  EXPECT_FALSE(
      run(folder.path(), sink, {.stop_at_step = 8, .nan_at_step = 7}, NonFinitePolicy::skip)
          .finished);
  EXPECT_EQ(saved_position(folder.path()).at("skipped_steps"), 1);
  edit_state(folder.path(), [](auto& state) {
    for (const char* key : {"skipped_steps", "epoch_skipped_steps"})
      state.at("position").erase(key);
  });
  EXPECT_EQ(run(folder.path(), sink, {.nan_at_step = 13}, NonFinitePolicy::skip).skipped_steps, 1);
  EXPECT_THAT(skipped_steps_of_epochs(sink), ElementsAre(0, 0, 1));
}

TEST_P(ResumeTest, FiniteLossesOfStepsThatTheGradientScalerDiscardsAreNotCounted) {
  if (GetParam() != Precision::fp16) GTEST_SKIP() << "only fp16 has a gradient scaler";
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  const Outcome outcome = run(folder.path(), sink, {.nan_gradients = true}, NonFinitePolicy::skip);
  EXPECT_TRUE(outcome.finished);
  EXPECT_THAT(skipped_steps_of_epochs(sink), ElementsAre(0, 0, 0));
  EXPECT_EQ(outcome.skipped_steps, 0);
}

/// Averages the gradients of ranks that are threads.
class ThreadGradients final : public GradSync {
 public:
  ThreadGradients(Communicator& ranks, const Model& model) : ranks_(ranks), model_(model) {}
  void begin_backward(bool /*last*/) override {}
  void finish_backward() override {
    const at::NoGradGuard no_grad;
    for (const NamedTensor& parameter : model_.parameters()) {
      const at::Tensor gradient = parameter.tensor.grad();
      ranks_.all_reduce_sum({gradient});
      gradient.div_(ranks_.world());
    }
  }
  void finish_step() override {}

 private:
  Communicator& ranks_;
  const Model& model_;
};

/// Runs one step for each list, which contains the ranks whose last micro-batch is NaN.
/// @return the skipped steps
std::int64_t skipped_steps_of_rank(Communicator& ranks, Precision precision,
                                   const std::vector<std::vector<int>>& steps) {
  constexpr std::int64_t kSize = 4;
  TrainPlan plan;
  plan.global_batch_size = kSize * ranks.world();
  plan.micro_batches = 2;
  plan.precision = precision;
  test::LinearModel model(3);
  const test::MeanCrossEntropy loss;
  OptimizerRegistry optimizers("optimizer");
  recipes::register_optimizers(optimizers);
  const auto optimizer = optimizers.make({"sgd"}, {model.parameters()});
  const std::vector<NamedMethod> methods;
  ThreadGradients sync(ranks, model);
  TrainStep step(plan, {model, loss, *optimizer, methods, ranks, sync}, at::kCPU,
                 /*skip_nonfinite=*/true);
  for (const std::vector<int>& bad_ranks : steps) {
    Batch batch{
        .fields = {{"image", at::ones({kSize, 3, 4, 4})}, {"label", at::zeros({kSize}, at::kLong)}},
        .sample_ids = std::vector<std::uint64_t>(kSize)};
    for (const int bad : bad_ranks)
      if (bad == ranks.rank()) batch.images().select(0, kSize - 1).fill_(NAN);
    static_cast<void>(step.run(batch, /*lr=*/0.1));
  }
  const std::int64_t skipped = step.take_skipped_steps();
  EXPECT_EQ(step.take_skipped_steps(), 0);
  return skipped;
}

TEST(SkippedStepsTest, AStepCountsOnceOnEveryRankWhicheverRanksHaveALossThatIsNotFinite) {
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
    SCOPED_TRACE(static_cast<int>(precision));
    std::vector<std::int64_t> skipped(2);
    test::run_as_ranks(2, [&](Communicator& ranks) {
      skipped[static_cast<std::size_t>(ranks.rank())] =
          skipped_steps_of_rank(ranks, precision, {{}, {1}, {0}, {}, {0, 1}});
    });
    EXPECT_THAT(skipped, ElementsAre(3, 3));
  }
}

TEST_P(ResumeTest, AnEpochOfSkippedStepsIsDivergedThoughItsLossesAreFinite) {
  if (GetParam() == Precision::fp16) GTEST_SKIP() << "in fp16, the scale collapses later";
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  try {
    static_cast<void>(run(folder.path(), sink, {.nan_gradients = true}, NonFinitePolicy::skip));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::diverged);
  }
  for (const std::string& record : sink.records)
    EXPECT_FALSE(nlohmann::json::parse(record).contains("train_loss")) << record;
}

TEST_P(ResumeTest, GoesBackToTheLastCheckpointWithHalfTheRate) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  // The NaN occurs in every attempt, so the run ends after three restores.
  try {
    static_cast<void>(run(folder.path(), sink, {.nan_at_step = 7}, NonFinitePolicy::restore));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::diverged);
    EXPECT_THAT(error.what(), test::Names(3));
    EXPECT_THAT(error.what(), testing::Not(test::Names("training.on_nonfinite")));
  }
  std::vector<double> rates;
  for (const std::string& record : sink.records) {
    const auto parsed = nlohmann::json::parse(record);
    if (parsed.contains("step") && parsed.at("step") == 5) rates.push_back(parsed.at("current_lr"));
  }
  // Each restore rewound the log, so only the records of the last attempt remain.
  ASSERT_EQ(rates.size(), 1U);
  EXPECT_DOUBLE_EQ(rates[0], 0.1 / 8);
}

TEST_P(ResumeTest, StoppedAfterANonFiniteLossItKeepsTheHalvedRate) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  // The ranks agree on the stop request only after the next step, whose loss is NaN.
  EXPECT_FALSE(
      run(folder.path(), sink, {.stop_at_step = 6, .nan_at_step = 7}, NonFinitePolicy::restore)
          .finished);
  const auto latest = latest_valid_checkpoint(folder.path());
  ASSERT_TRUE(latest);
  EXPECT_EQ(latest->step, kSteps);
  EXPECT_TRUE(latest->metric);
  const nlohmann::json position = saved_position(folder.path());
  EXPECT_EQ(position.at("lr_factor"), 0.5);
  EXPECT_EQ(position.at("restores"), 1);
  EXPECT_TRUE(run(folder.path(), sink).finished);
  EXPECT_EQ(saved_position(folder.path()).at("lr_factor"), 0.5);
}

TEST_P(ResumeTest, WithoutACheckpointToGoBackToItEndsWithoutAdviceToGoBack) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  for (const NonFinitePolicy policy : {NonFinitePolicy::stop, NonFinitePolicy::restore}) {
    try {
      static_cast<void>(run(folder.path(), sink, {.nan_at_step = 2}, policy));
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::diverged);
      EXPECT_EQ(test::names(error.what(), "training.on_nonfinite"),
                policy == NonFinitePolicy::stop);
    }
  }
}

}  // namespace
}  // namespace precast::engine
