#include "tools/report/data_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/message_matchers.h"

namespace precast::tools {
namespace {

using test::Names;

DataFacts slow_data() {
  return {.train_seconds = 100,
          .wait_seconds = 40,
          .times = {.processing = 90, .disk = 0, .blocked = 5, .ahead = 5},
          .process_images = 1000,
          .workers = 2,
          .default_workers = 2,
          .has_jpegs = true};
}

TEST(DataVerdictTest, DataThatKeepsUpIsNoLimit) {
  DataFacts facts = slow_data();
  facts.wait_seconds = 1.9;
  EXPECT_EQ(find_bottleneck(facts), DataBottleneck::nothing);
  const auto lines = describe_data(facts);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], Names("98.1 %", "1.9 %", 2));
}

TEST(DataVerdictTest, BusyWorkersMeanDecoding) {
  DataFacts facts = slow_data();
  EXPECT_EQ(find_bottleneck(facts), DataBottleneck::processing);
  EXPECT_THAT(describe_data(facts)[1], Names("precast index"));
  facts.has_jpegs = false;
  EXPECT_THAT(describe_data(facts)[1],
              testing::AllOf(Names("pipeline.train"), testing::Not(Names("precast index"))));
  facts.default_workers = 8;
  EXPECT_THAT(describe_data(facts)[1], Names("data.num_workers", 2, 8));
}

TEST(DataVerdictTest, ReadsMeanTheDisk) {
  DataFacts facts = slow_data();
  facts.in_memory = 0;
  facts.times = {.processing = 20, .disk = 70, .blocked = 5, .ahead = 5};
  EXPECT_EQ(find_bottleneck(facts), DataBottleneck::disk);
  EXPECT_THAT(describe_data(facts)[1], Names("data.cache_mb"));
}

TEST(DataVerdictTest, BlockedThreadsMeanTheDiskWherePagesWereReadAndTheCoresElse) {
  DataFacts facts = slow_data();
  facts.times = {.processing = 20, .disk = 0, .blocked = 75, .ahead = 5};
  facts.major_faults = 800;
  EXPECT_EQ(find_bottleneck(facts), DataBottleneck::disk);
  EXPECT_THAT(describe_data(facts)[1], Names("data.in_memory: 2"));
  facts.major_faults = 3;
  EXPECT_EQ(find_bottleneck(facts), DataBottleneck::cores);
}

TEST(DataVerdictTest, PageFaultsAreComparedWithTheImagesOfTheSameProcess) {
  DataFacts facts = slow_data();
  facts.times = {.processing = 20, .disk = 0, .blocked = 75, .ahead = 5};
  facts.major_faults = 40;
  EXPECT_EQ(find_bottleneck(facts), DataBottleneck::cores);
  facts.process_images = 500;  // half of them were trained before the run was resumed
  EXPECT_EQ(find_bottleneck(facts), DataBottleneck::disk);
}

TEST(DataVerdictTest, ThreadsThatWereMostlyAheadAreNoCause) {
  DataFacts facts = slow_data();
  facts.times = {.processing = 30, .disk = 0, .blocked = 10, .ahead = 60};
  EXPECT_EQ(find_bottleneck(facts), DataBottleneck::nothing);
  EXPECT_EQ(describe_data(facts).size(), 1U);
  EXPECT_EQ(facts.times.bottleneck(), "");
}

TEST(DataVerdictTest, CopiesThatTakeNearlyAllOfTheTimeAreTheLimitAlthoughTheHostDoesNotWait) {
  DataFacts facts = slow_data();
  facts.wait_seconds = 1;
  facts.times.copying = 89;
  EXPECT_EQ(find_bottleneck(facts), DataBottleneck::nothing);
  EXPECT_THAT(describe_data(facts)[0], Names("89.0 %"));
  facts.times.copying = 96;
  EXPECT_EQ(find_bottleneck(facts), DataBottleneck::copies);
  const auto lines = describe_data(facts);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], Names("96.0 %", "1.0 %"));
  EXPECT_THAT(lines[1], Names("convert"));
}

TEST(DataVerdictTest, WithoutMeasurementsThereIsNoCause) {
  DataFacts facts = slow_data();
  facts.times = {};
  EXPECT_EQ(find_bottleneck(facts), DataBottleneck::nothing);
  EXPECT_EQ(facts.times.bottleneck(), "");
  EXPECT_THAT(describe_data(facts)[0], testing::Not(Names("0.0 %")))
      << "the shares of the threads' time are unknown";
}

TEST(DataVerdictTest, ReplacedSamplesAreListedTheFirstTen) {
  DataFacts facts = slow_data();
  facts.replaced.assign(12, {.sample = 7, .by = 8, .times = 3, .error = "broken"});
  const auto lines = describe_data(facts);
  ASSERT_EQ(lines.size(), 2U + 1 + 10 + 1);
  EXPECT_THAT(lines[2], Names(12));
  EXPECT_THAT(lines[3], Names(7, 8, 3, "broken"));
  EXPECT_THAT(lines[13], Names(2));
}

TEST(DataVerdictTest, ARunWithoutTimesHasAMeaningfulText) {
  EXPECT_THAT(describe_data({})[0], Names("100.0 %", "0.0 %"));
}

}  // namespace
}  // namespace precast::tools
