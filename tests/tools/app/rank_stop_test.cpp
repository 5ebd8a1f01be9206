// A rank that exists but makes no progress; only its missing heartbeats reveal this.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/support/message_matchers.h"
#include "tests/tools/app/two_ranks.h"

namespace precast::tools {
namespace {

using test::Program;

class RankRuns : public ::testing::Test {
 protected:
  test::TwoRanks ranks_;
};

class RankStallTest : public RankRuns, public testing::WithParamInterface<const char*> {};

TEST_P(RankStallTest, TheOthersEndWithinAMinute) {
  const auto start = std::chrono::steady_clock::now();
  Program run(ranks_.command("r", {"--dist.nproc=2"}),
              {std::string("PRECAST_FAILPOINTS=") + GetParam()});
  EXPECT_EQ(run.wait(), 13) << run.err;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  EXPECT_EQ(test::occurrences(run.err, "error: "), 1) << run.err;
  const std::string rank(1, std::string(GetParam()).back());
  EXPECT_THAT(run.err, test::Names("rank " + rank));
}

INSTANTIATE_TEST_SUITE_P(Places, RankStallTest,
                         testing::Values("trainer.before_step=stop@1%1",
                                         "trainer.before_step=stop@2%0",
                                         "evaluator.before_batch=stop@1%1",
                                         "checkpoint.before_file=stop@1%0"));

}  // namespace
}  // namespace precast::tools
