// Runs with losses or gradients that are not finite (training.on_nonfinite).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/core/archive/checkpoint_folder.h"
#include "framework/core/error.h"
#include "tests/framework/engine/resumed_run.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::engine {
namespace {

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
