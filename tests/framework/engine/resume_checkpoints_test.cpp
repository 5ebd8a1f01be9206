// Which checkpoints a run keeps, and which it continues from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/core/archive/checkpoint_folder.h"
#include "framework/core/archive/weights_file.h"
#include "framework/core/error.h"
#include "tests/framework/engine/resumed_run.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::engine {
namespace {

TEST_P(ResumeTest, ACheckpointNamesItsAveragesUnlessTheMethodsLeaveItOpen) {
  using Value = std::optional<std::string>;
  for (const auto& [ema, scope, value] :
       {std::tuple(true, true, Value("ema")), std::tuple(false, false, Value("")),
        std::tuple(false, true, Value())}) {
    with_ema_ = ema;
    with_scope_ = scope;
    const test::TemporaryFolder folder;
    test::MemorySink sink;
    ASSERT_TRUE(run(folder.path(), sink).finished);
    const WeightsFile file =
        load_weights(find_checkpoints(folder.path()).front().path / "model.safetensors");
    const auto found = file.metadata().find(std::string(kAveragesKey));
    EXPECT_EQ(found == file.metadata().end() ? Value() : found->second, value);
  }
}

TEST_P(ResumeTest, AFinishedRunKeepsOnlyItsLastAndItsBestCheckpoint) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  EXPECT_TRUE(run(folder.path(), sink).finished);
  const auto kept = find_checkpoints(folder.path());
  ASSERT_FALSE(kept.empty());
  EXPECT_EQ(kept[0].step, kEpochs * kSteps);
  EXPECT_LE(kept.size(), 2U);
  // Of epochs with equal metrics, the earliest is the best one.
  double best = -1;
  std::int64_t best_step = 0;
  for (const std::string& record : sink.records) {
    const auto parsed = nlohmann::json::parse(record);
    if (!parsed.contains(best_.name) || parsed.at(best_.name).get<double>() <= best) continue;
    best = parsed.at(best_.name).get<double>();
    best_step = parsed.at("steps").get<std::int64_t>();
  }
  EXPECT_EQ(kept.back().step, best_step);
  EXPECT_EQ(kept.back().metric, best);
}

TEST_P(ResumeTest, AFinishedRunHasACheckpointOfItsEnd) {
  // The run's 15 steps and 3 epochs are not multiples of the first two intervals; 15 is a multiple
  // of the third.
  for (const auto& [steps, epochs] : {std::pair(0, 2), std::pair(4, 0), std::pair(5, 0)}) {
    SCOPED_TRACE(testing::Message() << steps << " steps, " << epochs << " epochs");
    every_steps_ = steps;
    every_epochs_ = epochs;
    const test::TemporaryFolder folder;
    test::MemorySink sink;
    EXPECT_TRUE(run(folder.path(), sink).finished);
    const auto latest = latest_valid_checkpoint(folder.path());
    ASSERT_TRUE(latest);
    EXPECT_EQ(latest->step, kEpochs * kSteps);
    EXPECT_TRUE(latest->metric);
    EXPECT_EQ(saved_position(folder.path()).at("epoch"), kEpochs);
    steps_.clear();
    EXPECT_TRUE(run(folder.path(), sink).finished);
    EXPECT_TRUE(steps_.empty());
  }
  every_steps_ = 0;
  every_epochs_ = 0;
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  EXPECT_TRUE(run(folder.path(), sink).finished);
  EXPECT_TRUE(find_checkpoints(folder.path()).empty());
}

TEST_P(ResumeTest, ACheckpointAfterTheLastStepOfAnEpochHasTheMetricOfTheEpoch) {
  every_steps_ = kSteps;
  every_epochs_ = 0;
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = kSteps + 1}).finished);
  const auto saved = find_checkpoints(folder.path());
  ASSERT_EQ(saved.size(), 2U);
  EXPECT_FALSE(saved[0].metric);
  EXPECT_EQ(saved[1].step, kSteps);
  EXPECT_TRUE(saved[1].metric);
}

TEST_P(ResumeTest, CutInTheEvaluationOfAFinishedRunTheLastCheckpointKeepsItsMetric) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  EXPECT_TRUE(run(folder.path(), sink).finished);
  const auto before = latest_valid_checkpoint(folder.path());
  ASSERT_TRUE(before && before->metric);
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_val_batch = 0}).finished);
  const auto after = latest_valid_checkpoint(folder.path());
  ASSERT_TRUE(after);
  EXPECT_EQ(after->step, before->step);
  EXPECT_EQ(after->metric, before->metric);
}

TEST_P(ResumeTest, AnotherPrecisionIsRefusedUnlessItIsAllowed) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 7}).finished);
  precision_ = GetParam() == Precision::fp16 ? Precision::fp32 : Precision::fp16;
  EXPECT_THROW(static_cast<void>(run(folder.path(), sink)), CheckpointError);
  any_precision_ = true;
  EXPECT_TRUE(run(folder.path(), sink).finished);
  EXPECT_EQ(sink.records.size(), static_cast<std::size_t>(kEpochs * (kSteps + 1)));
}

TEST_P(ResumeTest, MissingTensorsAndUnexpectedOnesAreBothReported) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 7}).finished);
  last_tensor_ = "head.weight";
  EXPECT_THAT([&] { static_cast<void>(run(folder.path(), sink)); },
              testing::ThrowsMessage<CheckpointError>(
                  test::Names("model.safetensors", "head.weight", "1 tensor")));
}

TEST_P(ResumeTest, ValuesOfAnotherMetricAreNotCompared) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  // The run is stopped in the second epoch, after the first epoch has recorded a top-1.
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 7}).finished);
  const nlohmann::json before = saved_position(folder.path());
  EXPECT_EQ(before.at("best_epoch"), 0);
  best_ = {.name = "val_loss", .higher_is_better = false};
  EXPECT_TRUE(run(folder.path(), sink).finished);
  std::vector<double> losses;
  for (const std::string& record : sink.records) {
    const auto parsed = nlohmann::json::parse(record);
    if (parsed.contains("val_loss")) losses.push_back(parsed.at("val_loss"));
  }
  ASSERT_EQ(losses.size(), static_cast<std::size_t>(kEpochs));
  const nlohmann::json after = saved_position(folder.path());
  EXPECT_EQ(after.at("best_top_1").get<double>(), std::min(losses[1], losses[2]));
  EXPECT_EQ(after.at("best_epoch").get<int>(), losses[1] <= losses[2] ? 1 : 2);
  EXPECT_EQ(after.at("best_since"), before.at("global_step"));
}

TEST_P(ResumeTest, ValuesOfAnotherEvaluationAreNotCompared) {
  // The saved run is stopped in the second epoch, or finishes with it and is then extended.
  for (const bool finished : {false, true}) {
    const test::TemporaryFolder folder;
    test::MemorySink sink;
    same_evaluation_ = true;
    epochs_ = finished ? 2 : kEpochs;
    EXPECT_EQ(run(folder.path(), sink, {.stop_at_step = finished ? kNever : 7}).finished, finished);
    // No later epoch can reach this value.
    edit_state(folder.path(), [](auto& state) { state.at("position")["best_top_1"] = 2; });
    const nlohmann::json before = saved_position(folder.path());
    same_evaluation_ = false;
    epochs_ = kEpochs;
    EXPECT_TRUE(run(folder.path(), sink).finished);
    const nlohmann::json after = saved_position(folder.path());
    EXPECT_LE(after.at("best_top_1").get<double>(), 1);
    EXPECT_GE(after.at("best_epoch").get<int>(), finished ? 2 : 1);
    EXPECT_EQ(after.at("best_since").get<int>(),
              before.at("global_step").get<int>() + (finished ? 1 : 0));
  }
}

TEST_P(ResumeTest, TheMetricOfAnEarlierVersionsCheckpointIsInItsIdentity) {
  const auto first = best_;
  for (const bool other : {false, true}) {
    const test::TemporaryFolder folder;
    test::MemorySink sink;
    best_ = first;
    EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 6}).finished);
    // Checkpoints of earlier versions lack this entry.
    edit_state(folder.path(), [](auto& state) { state.at("position").erase("best_metric"); });
    const nlohmann::json before = saved_position(folder.path());
    ASSERT_FALSE(before.contains("best_metric"));
    if (other) best_ = {.name = "val_loss", .higher_is_better = false};
    EXPECT_TRUE(run(folder.path(), sink).finished);
    const nlohmann::json after = saved_position(folder.path());
    EXPECT_EQ(after.at("best_metric"), best_.name);
    EXPECT_EQ(after.at("best_since"), other ? before.at("global_step") : nlohmann::json(0));
  }
}

TEST_P(ResumeTest, WithOnlyDamagedCheckpointsItDoesNotStartOver) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 7}).finished);
  const std::vector<std::string> records = sink.records;
  for (const StoredCheckpoint& checkpoint : find_checkpoints(folder.path()))
    std::filesystem::resize_file(checkpoint.path / "model.safetensors", 10);
  EXPECT_THAT([&] { static_cast<void>(run(folder.path(), sink)); },
              testing::ThrowsMessage<CheckpointError>(
                  test::Names(folder.path().string(), "logging.run_id")));
  EXPECT_EQ(sink.records, records);
}

}  // namespace
}  // namespace precast::engine
