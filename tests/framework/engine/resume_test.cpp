// A run that is interrupted and resumed ends with the same results as an uninterrupted run.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
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

TEST_P(ResumeTest, InterruptedAtAnyStepItEndsAsTheUninterruptedRun) {
  const test::TemporaryFolder uncut_folder;
  test::MemorySink uncut_sink;
  const Outcome uncut = run(uncut_folder.path(), uncut_sink);
  ASSERT_TRUE(uncut.finished);
  ASSERT_EQ(uncut.log.size(), kEpochs * (kSteps + 1));
  for (std::int64_t step = 0; step < kEpochs * kSteps; ++step) {
    const test::TemporaryFolder folder;
    test::MemorySink sink;
    const bool cut = !run(folder.path(), sink, {.stop_at_step = step}).finished;
    // Only a request during the last batch of the last evaluation would be too late.
    EXPECT_TRUE(cut) << step;
    EXPECT_EQ(run(folder.path(), sink), uncut) << step;
  }
}

TEST_P(ResumeTest, InterruptedRunsOfMethodsEndAsUninterruptedOnes) {
  const std::vector<std::pair<std::string, std::string>> recipes[] = {
      {{"sam", "{interval: 2}"}, {"swa", "{start: 0.3}"}},
      {{"adaptive_gradient_clipping", "{}"}, {"sam", "{}"}},
      {{"selective_backprop", "{start: 0, end: 1}"}, {"layer_freezing", "{freeze_start: 0}"}}};
  for (const auto& methods : recipes) {
    more_methods_ = methods;
    const test::TemporaryFolder uncut_folder;
    test::MemorySink uncut_sink;
    const Outcome uncut = run(uncut_folder.path(), uncut_sink);
    ASSERT_TRUE(uncut.finished);
    for (const std::int64_t step : {1, 6, 9, 13}) {
      const test::TemporaryFolder folder;
      test::MemorySink sink;
      EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = step}).finished);
      EXPECT_EQ(run(folder.path(), sink), uncut) << methods[0].first << step;
    }
  }
}

TEST_P(ResumeTest, BlurredLayersAndAModelsOwnFiltersKeepTheirWeights) {
  const std::map<std::string, std::int64_t> own, blurred = {{"conv", 3}};
  for (const auto& [layers, last] :
       {std::pair(own, "fc.blur_filter"), std::pair(blurred, "fc.weight")}) {
    model_spec_ = {.arch = "small", .blurpool = true, .blurred = layers};
    last_tensor_ = last;
    const test::TemporaryFolder uncut_folder, folder;
    test::MemorySink uncut_sink, sink;
    const Outcome uncut = run(uncut_folder.path(), uncut_sink);
    EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 6}).finished);
    EXPECT_EQ(run(folder.path(), sink), uncut) << last;
  }
}

TEST_P(ResumeTest, InterruptedInAnEvaluationItEvaluatesAgain) {
  const test::TemporaryFolder uncut_folder;
  test::MemorySink uncut_sink;
  const Outcome uncut = run(uncut_folder.path(), uncut_sink);
  for (std::int64_t batch = 0; batch < 8; ++batch) {
    const test::TemporaryFolder folder;
    test::MemorySink sink;
    static_cast<void>(run(folder.path(), sink, {.stop_at_val_batch = batch}));
    EXPECT_EQ(run(folder.path(), sink), uncut) << batch;
  }
}

TEST_P(ResumeTest, CutWhileASourcePreparesAPassItUsesNoBatchOfThisPass) {
  // Stop flags that are summed after a batch are read after the next one. An evaluation of a single
  // batch never reads them.
  val_batch_size_ = 5;
  const test::TemporaryFolder uncut_folder;
  test::MemorySink uncut_sink;
  const Outcome uncut = run(uncut_folder.path(), uncut_sink);
  for (std::int64_t pass = 0; pass < kEpochs; ++pass) {
    for (const bool training : {true, false}) {
      SCOPED_TRACE(testing::Message() << (training ? "training " : "validation ") << pass);
      const test::TemporaryFolder folder;
      test::MemorySink sink;
      Interruption cut;
      (training ? cut.stop_at_train_pass : cut.stop_at_val_pass) = pass;
      EXPECT_FALSE(run(folder.path(), sink, cut).finished);
      const nlohmann::json position = saved_position(folder.path());
      EXPECT_EQ(position.at("epoch"), pass);
      EXPECT_EQ(position.at("step"), training ? 0 : kSteps);
      EXPECT_EQ(run(folder.path(), sink), uncut);
    }
  }
}

TEST_P(ResumeTest, InterruptedRepeatedlyItEndsAsTheUninterruptedRun) {
  const test::TemporaryFolder uncut_folder, folder;
  test::MemorySink uncut_sink, sink;
  const Outcome uncut = run(uncut_folder.path(), uncut_sink);
  Outcome last;
  for (std::int64_t step = 0; step < kEpochs * kSteps; step += 2)
    last = run(folder.path(), sink, {.stop_at_step = step});
  EXPECT_EQ(run(folder.path(), sink), uncut);
}

TEST_P(ResumeTest, TheTimeOfTheLastEvaluationIsCountedOnce) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  const double counted = run(folder.path(), sink).eval_seconds;
  EXPECT_EQ(run(folder.path(), sink).eval_seconds, counted);
}

TEST_P(ResumeTest, TheTimeOfTheFirstEvaluationIsCountedInARunMadeShorter) {
  evaluate_each_epoch_ = false;
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = kSteps}).finished);
  epochs_ = 1;
  const Outcome outcome = run(folder.path(), sink);
  ASSERT_TRUE(outcome.finished);
  EXPECT_GT(outcome.eval_seconds, 0);
  EXPECT_EQ(outcome.eval_seconds, outcome.last_eval_seconds);
}

TEST_P(ResumeTest, TheClockOfASinkContinuesFromTheCheckpoint) {
  for (const bool earlier_version : {false, true}) {
    const test::TemporaryFolder folder;
    test::MemorySink sink;
    sink.clock = 40;
    EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 7}).finished);
    if (earlier_version)
      edit_state(folder.path(), [](auto& state) { state.erase("sink_seconds"); });
    sink.clock = 3;
    EXPECT_TRUE(run(folder.path(), sink).finished);
    EXPECT_EQ(sink.clock, earlier_version ? 3 : 40);
  }
}

TEST_P(ResumeTest, WithHalfTheBatchEachSampleOfTheEpochIsTrainedOnce) {
  for (const bool earlier_version : {false, true}) {
    const test::TemporaryFolder folder;
    test::MemorySink sink;
    batch_size_ = kBatch;
    samples_.clear();
    EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 6}).finished);
    const std::int64_t step = saved_position(folder.path()).at("step");
    ASSERT_GT(step, 0);
    ASSERT_LT(step, kSteps);
    if (earlier_version) {
      edit_state(folder.path(), [](auto& state) {
        for (const char* key : {"global_batch_size", "steps_per_epoch"})
          state.at("position").erase(key);
      });
    }
    batch_size_ = kBatch / 2;
    steps_.clear();
    EXPECT_TRUE(run(folder.path(), sink).finished);
    std::vector<int> times(kSteps * kBatch);
    for (const std::uint64_t sample : samples_) ++times.at(sample);
    EXPECT_THAT(times, testing::Each(kEpochs));
    // The step numbers follow the resumed run's plan, in which an epoch has twice as many steps.
    ASSERT_FALSE(steps_.empty());
    EXPECT_EQ(steps_.front(), 2 * (kSteps + step));
    EXPECT_EQ(steps_.back(), 2 * kSteps * kEpochs - 1);
  }
}

TEST_P(ResumeTest, TheLossesOfAnEpochCountTheirSamplesIfTheBatchSizeDiffers) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 6}).finished);
  const std::int64_t step = saved_position(folder.path()).at("step");
  batch_size_ = kBatch / 2;
  EXPECT_TRUE(run(folder.path(), sink).finished);
  double before = 0, after = 0, mean = 0;
  for (const std::string& record : sink.records) {
    const auto parsed = nlohmann::json::parse(record);
    if (parsed.at("epoch") != 1) continue;
    if (parsed.contains("train_loss")) {
      mean = parsed.at("train_loss");
    } else {
      (parsed.at("step") < kSteps + step ? before : after) += parsed.at("loss").get<double>();
    }
  }
  EXPECT_NEAR(mean, (2 * before + after) / (2 * kSteps), 1e-6);
}

TEST_P(ResumeTest, ABatchThatTheFinishedStepsDoNotFillIsRefused) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = kSteps + 1}).finished);
  ASSERT_EQ(saved_position(folder.path()).at("step"), 3);
  batch_size_ = 2 * kBatch;
  const auto refused = [&](const test::NamesMatcher& facts) {
    EXPECT_THAT([&] { static_cast<void>(run(folder.path(), sink)); },
                testing::ThrowsMessage<CheckpointError>(facts));
  };
  refused(test::Names(kBatch, 2 * kBatch, "training.global_batch_size: 4"));
  // With half the batch, 3 of 5 steps would be 6 of 10, but with different samples.
  batch_size_ = kBatch / 2;
  batch_sets_order_ = true;
  refused(test::Names(kBatch, kBatch / 2, "order"));
  batch_size_ = kBatch;
  EXPECT_TRUE(run(folder.path(), sink).finished);
}

TEST_P(ResumeTest, AnyBatchSizeIsAcceptedAtTheEndOfAnEpoch) {
  batch_sets_order_ = true;
  for (const bool evaluated : {false, true}) {
    const test::TemporaryFolder folder;
    test::MemorySink sink;
    batch_size_ = kBatch;
    if (evaluated) {
      EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 6}).finished);
      std::filesystem::remove_all(latest_valid_checkpoint(folder.path())->path);
    } else {
      EXPECT_FALSE(run(folder.path(), sink, {.stop_at_val_batch = 0}).finished);
    }
    EXPECT_EQ(saved_position(folder.path()).at("step"), evaluated ? 0 : kSteps);
    batch_size_ = 10;
    steps_.clear();
    EXPECT_TRUE(run(folder.path(), sink).finished);
    EXPECT_THAT(steps_, testing::ElementsAre(2, 3, 4, 5));
  }
}

TEST_P(ResumeTest, ReplacedSamplesOfAllItsPartsAreListed) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  replaced_ = {{.sample = 2, .by = 3, .times = 4, .error = "a"},
               {.sample = 7, .by = 8, .times = 1, .error = "b"}};
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 7}).finished);
  replaced_ = {{.sample = 2, .by = 3, .times = 10, .error = "a"},
               {.sample = 5, .by = 6, .times = 1, .error = "c\xff"}};
  const auto replaced = run(folder.path(), sink).replaced;
  ASSERT_EQ(replaced.size(), 3U);
  EXPECT_EQ(replaced[0].times, 14);
  EXPECT_EQ(replaced[1].sample, 5U);
  EXPECT_EQ(replaced[2].sample, 7U);
  EXPECT_EQ(replaced[2].by, 8U);
  EXPECT_EQ(replaced[2].error, "b");
}

TEST_P(ResumeTest, LoaderTimesAreThoseOfAllItsParts) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  loader_times_ = {.processing = 8, .ahead = 4, .copying = 1};
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 7}).finished);
  // Each process reports only its own times, so `ahead` may be shorter than in the first.
  loader_times_ = {.processing = 9, .disk = 2, .ahead = 3, .copying = 1};
  const Outcome outcome = run(folder.path(), sink);
  EXPECT_EQ(outcome.loader_times.processing, 17);
  EXPECT_EQ(outcome.loader_times.disk, 2);
  EXPECT_EQ(outcome.loader_times.ahead, 7);
  EXPECT_EQ(outcome.loader_times.copying, 2);
  EXPECT_EQ(nlohmann::json::parse(sink.records.back()).at("loader_time"),
            nlohmann::json::parse(R"({"decoding": 17.0, "reading": 2.0, "blocked": 0.0,
                                      "ahead": 7.0, "copying": 2.0})"));
}

TEST_P(ResumeTest, LoaderTimesContinueFromZeroAfterAnEarlierVersionsCheckpoint) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  loader_times_ = {.processing = 8};
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 7}).finished);
  edit_state(folder.path(), [](auto& state) { state.at("position").erase("loader_time"); });
  loader_times_ = {.processing = 9};
  EXPECT_EQ(run(folder.path(), sink).loader_times.processing, 9);
}

TEST_P(ResumeTest, TheImagesOfAProcessAreThoseSinceItResumed) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  const Outcome first = run(folder.path(), sink, {.stop_at_step = 7});
  EXPECT_EQ(first.process_images, first.images_trained);
  const Outcome second = run(folder.path(), sink);
  EXPECT_EQ(second.images_trained, kEpochs * kSteps * kBatch);
  EXPECT_EQ(second.process_images, second.images_trained - first.images_trained);
}

TEST_P(ResumeTest, TheNumberOfComputeThreadsIsTakenOverOrAWarningNamesBoth) {
  const int before = at::get_num_threads();
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  at::set_num_threads(2);
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 3}).finished);
  at::set_num_threads(1);
  max_threads_ = 2;
  testing::internal::CaptureStderr();
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 7}).finished);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::Not(testing::HasSubstr("OMP_NUM_THREADS")));
  EXPECT_EQ(at::get_num_threads(), 2);
  at::set_num_threads(1);
  max_threads_ = 1;
  testing::internal::CaptureStderr();
  EXPECT_TRUE(run(folder.path(), sink).finished);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              test::Names("warning", "compute threads", 2, 1, "OMP_NUM_THREADS=2"));
  EXPECT_EQ(at::get_num_threads(), 1);
  at::set_num_threads(before);
}

INSTANTIATE_TEST_SUITE_P(Precisions, ResumeTest, testing::Values(Precision::fp32, Precision::fp16),
                         [](const auto& parameter) {
                           return parameter.param == Precision::fp16 ? "fp16" : "fp32";
                         });

}  // namespace
}  // namespace precast::engine
