#include "tools/app/run_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/message_matchers.h"

namespace precast::tools {
namespace {

using test::Names;

std::string printed(bool is_classification, bool images, bool flip_tta) {
  engine::TrainSummary summary;
  summary.final_eval =
      engine::EvalResult{.samples = 40, .loss = 0.5, .is_classification = is_classification};
  testing::internal::CaptureStdout();
  print_results({.summary = summary, .images = images, .flip_tta = flip_tta, .folder = "runs/a"});
  return testing::internal::GetCapturedStdout();
}

TEST(RunResultsTest, EveryLossSaysWhatWasEvaluatedAndHow) {
  for (const bool is_classification : {true, false}) {
    EXPECT_THAT(printed(is_classification, true, true), Names("40 images", "flip TTA"));
    const std::string samples = printed(is_classification, false, false);
    EXPECT_THAT(samples, Names("40 samples"));
    EXPECT_THAT(samples, testing::Not(Names("flip TTA")));
  }
}

}  // namespace
}  // namespace precast::tools
