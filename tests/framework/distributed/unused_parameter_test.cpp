// What happens if a rank computes no gradient for a parameter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "framework/core/error.h"
#include "framework/distributed/heartbeat.h"
#include "tests/support/message_matchers.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

namespace precast::distributed {
namespace {

using test::Names;
using test::Program;
using test::TemporaryFolder;

constexpr int kFailed = static_cast<int>(ExitCode::failed);
constexpr int kPeerFailed = static_cast<int>(ExitCode::peer_failed);

struct End {
  int code;
  std::string err, weights;
};

/// Trains 2 steps on `world` ranks and returns how each rank ended.
std::vector<End> train(int world, const std::vector<std::string>& options) {
  const TemporaryFolder folder;
  const StoreHost store("127.0.0.1");
  std::vector<std::unique_ptr<Program>> ranks;
  for (int rank = 0; rank < world; ++rank) {
    std::vector<std::string> args = {RANK_PROGRAM,          std::to_string(rank),
                                     std::to_string(world), std::to_string(store.port()),
                                     folder / "out",        "steps=2"};
    args.insert(args.end(), options.begin(), options.end());
    ranks.push_back(std::make_unique<Program>(args));
  }
  std::vector<End> ends;
  for (const auto& rank : ranks) {
    const int code = rank->wait();
    std::ifstream weights(folder / ("out." + std::to_string(ends.size()) + ".weights"),
                          std::ios::binary);
    ends.push_back({code, rank->err, {std::istreambuf_iterator<char>(weights), {}}});
  }
  return ends;
}

class UnusedParameterTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::string update_ =
      GetParam() == std::string("zero") ? "zero=1" : std::string("update=") + GetParam();
};

TEST_P(UnusedParameterTest, IsAnErrorOnTheRankWithoutItsGradientAndNoRankWaits) {
  const auto ends = train(2, {update_, "bias_every=0", "sparse_ranks=1"});
  EXPECT_EQ(ends[0].code, kPeerFailed) << ends[0].err;
  EXPECT_EQ(ends[1].code, kFailed) << ends[1].err;
  EXPECT_THAT(ends[1].err, Names("fc.bias"));
}

TEST_P(UnusedParameterTest, IsAnErrorOnEveryRankIfNoRankUsesIt) {
  for (const End& end : train(2, {update_, "bias_every=0", "sparse_ranks=0,1"})) {
    EXPECT_EQ(end.code, kFailed) << end.err;
    EXPECT_THAT(end.err, Names("fc.bias"));
  }
}

/// With update=replicated, c10d's Reducer would wait for the gradient even in a group of one rank.
TEST_P(UnusedParameterTest, IsAnErrorInAGroupOfOneRank) {
  for (const char* compression : {"none", "bf16"}) {
    const auto ends = train(1, {update_, "group=1", std::string("compression=") + compression,
                                "micro_batches=2", "bias_every=0", "sparse_ranks=0"});
    EXPECT_EQ(ends[0].code, kFailed) << ends[0].err;
    EXPECT_THAT(ends[0].err, Names("fc.bias"));
  }
}

INSTANTIATE_TEST_SUITE_P(Updates, UnusedParameterTest,
                         ::testing::Values("replicated", "after_backward", "parameter_server",
                                           "zero"),
                         [](const auto& test) { return std::string(test.param); });

TEST(UnusedParameterOfOneRankTest, IsAllowedWithoutAGroup) {
  EXPECT_EQ(train(1, {"bias_every=0", "sparse_ranks=0"})[0].code, 0);
}

/// Only the first of two micro-batches uses the bias. With update=replicated, the buckets are sent
/// during the backward pass of the second one.
TEST(ParameterOfAnEarlierMicroBatchTest, IsAveragedAfterTheBackwardPassButNotDuringIt) {
  const std::vector<std::string> sparse = {"micro_batches=2", "bias_every=2", "sparse_ranks=0,1"};
  for (const char* update : {"after_backward", "parameter_server", "replicated"}) {
    auto options = sparse;
    options.push_back(std::string("update=") + update);
    const auto ends = train(2, options);
    const int code = update == std::string("replicated") ? kFailed : 0;
    EXPECT_EQ(ends[0].code, code) << update << ends[0].err;
    EXPECT_EQ(ends[1].code, code) << update << ends[1].err;
    EXPECT_EQ(ends[0].weights, ends[1].weights) << update;
    for (const End& end : ends) EXPECT_EQ(test::names(end.err, "fc.bias"), code == kFailed);
  }
}

/// In the second epoch, `layer_freezing` drops the gradients of the first layer, and only the first
/// of two micro-batches uses the bias.
TEST(ParameterOfAnEarlierMicroBatchTest, IsDistinguishedFromThoseWhoseGradientsAMethodDrops) {
  for (const End& end :
       train(2, {"epochs=2", "micro_batches=2", "sparse_after=4", "bias_every=2",
                 "sparse_ranks=0,1", "methods=layer_freezing:{freeze_start: 0}"})) {
    EXPECT_EQ(end.code, kFailed) << end.err;
    EXPECT_THAT(end.err, Names("fc.bias"));
    EXPECT_THAT(end.err, testing::Not(Names("conv1.weight")));
  }
}

}  // namespace
}  // namespace precast::distributed
