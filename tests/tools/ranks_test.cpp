// Several ranks from the command line, as a user starts them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/tools/two_ranks.h"

namespace precast::tools {
namespace {

using test::occurrences;
using test::Program;
using test::TwoRanks;
using testing::AnyOf;
using testing::HasSubstr;

struct Ended {
  std::vector<int> codes;
  /// What all of them have said on standard error.
  std::string err;
};

class RanksTest : public ::testing::Test {
 protected:
  /// Starts one rank by hand for each entry, with these more arguments, and waits for all.
  /// @param numbers the rank that each calls itself; empty: 0, 1, ...
  Ended by_hand(const std::vector<std::vector<std::string>>& arguments, int world,
                std::vector<int> numbers = {}) const {
    const int port = TwoRanks::free_port();
    std::vector<std::unique_ptr<Program>> programs;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const int rank = numbers.empty() ? static_cast<int>(i) : numbers[i];
      programs.push_back(std::make_unique<Program>(ranks_.command("hand", arguments[i]),
                                                   TwoRanks::rank_environment(rank, world, port)));
    }
    Ended ended;
    for (const auto& program : programs) {
      ended.codes.push_back(program->wait());
      ended.err += program->err;
    }
    return ended;
  }
  Ended alone(const std::vector<std::string>& arguments,
              std::vector<std::string> environment = {}) const {
    Program program(ranks_.command("alone", arguments), std::move(environment));
    const int code = program.wait();
    return {{code}, program.err};
  }

  TwoRanks ranks_;
};

TEST_F(RanksTest, RanksStartedByHandTrainLikeThoseOfTheLauncher) {
  Program launcher(ranks_.command("launcher", {"--dist.nproc=2"}), TwoRanks::kEnvironment);
  ASSERT_EQ(launcher.wait(), 0) << launcher.err;
  const Ended hand = by_hand({{}, {}}, 2);
  ASSERT_EQ(hand.codes, (std::vector{0, 0})) << hand.err;
  EXPECT_EQ(ranks_.rows("launcher").size(), 2 * 3 + 2U);
  EXPECT_EQ(ranks_.rows("launcher"), ranks_.rows("hand"));
  ASSERT_FALSE(ranks_.weights("hand").empty());
  EXPECT_TRUE(ranks_.weights("launcher") == ranks_.weights("hand")) << "other weights";
  EXPECT_EQ(occurrences(launcher.err, "=> 2 ranks on 1 host"), 1) << launcher.err;
  EXPECT_EQ(occurrences(hand.err, "=> 2 ranks on 1 host"), 1) << hand.err;
}

TEST_F(RanksTest, RanksThatWereGivenDifferentThingsAreRefused) {
  const Ended ended = by_hand({{}, {"--lr.lr=0.03"}}, 2);
  EXPECT_THAT(ended.codes, testing::Each(AnyOf(2, 13)));
  EXPECT_EQ(occurrences(ended.err, "lr.lr: 0.03 there, 0.01 here"), 1) << ended.err;
  EXPECT_EQ(occurrences(ended.err, "error:"), 1) << ended.err;
  EXPECT_FALSE(std::filesystem::exists(ranks_.folder("hand")));
}

TEST_F(RanksTest, RanksThatDoNotComeAreNamed) {
  const std::vector<std::string> short_wait = {"--dist.join_timeout_s=3"};
  const Ended ended = by_hand({short_wait, short_wait}, 4, {0, 2});
  EXPECT_THAT(ended.codes, testing::Each(6));
  EXPECT_EQ(occurrences(ended.err, "expected 4 ranks at 127.0.0.1:"), 2) << ended.err;
  EXPECT_EQ(occurrences(ended.err, "ranks 1, 3 have not come"), 2) << ended.err;
}

TEST_F(RanksTest, ARankThatIsThereTwiceIsRefused) {
  const std::vector<std::string> short_wait = {"--dist.join_timeout_s=3"};
  const Ended ended = by_hand({short_wait, short_wait, short_wait}, 3, {0, 1, 1});
  EXPECT_THAT(ended.codes, testing::Each(6));
  EXPECT_GE(occurrences(ended.err, "rank 1 has come twice"), 1) << ended.err;
}

TEST_F(RanksTest, WithoutRankZeroTheMeetingPointIsNamed) {
  const Ended ended = by_hand({{"--dist.join_timeout_s=2"}}, 2, {1});
  EXPECT_EQ(ended.codes[0], 6);
  EXPECT_THAT(ended.err, HasSubstr("expected rank 0 at 127.0.0.1:"));
  EXPECT_THAT(ended.err, testing::Not(HasSubstr("frame #")));
}

TEST_F(RanksTest, WrongNumbersOfRanksAreRefused) {
  const auto fails = [&](const Ended& ended, const std::string& text) {
    EXPECT_EQ(ended.codes[0], 2) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(text));
  };
  fails(alone({"--dist.nproc=0"}), "dist.nproc: expected auto or 1 to 4096, got '0'");
  fails(alone({"--dist.port=99999"}), "dist.port: expected 1 to 65535, got '99999'");
  fails(alone({"--training.global_batch_size=7", "--dist.nproc=2"}),
        "training.global_batch_size: expected a multiple of the 2 ranks, got 7");
  fails(alone({"--dist.nproc=8"}, TwoRanks::rank_environment(0, 2, 29500)),
        "dist.nproc: expected none where torchrun has started the 2 ranks, got '8'");
  fails(alone({}, {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2",
                   "OMPI_COMM_WORLD_LOCAL_RANK=0", "OMPI_COMM_WORLD_LOCAL_SIZE=1"}),
        "dist.address: expected the host of rank 0, since Open MPI has started ranks on several "
        "hosts, got 'localhost'");
}

}  // namespace
}  // namespace precast::tools
