// Several ranks, started on the command line as a user does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/support/message_matchers.h"
#include "tests/tools/app/two_ranks.h"

namespace precast::tools {
namespace {

using test::Names;
using test::occurrences;
using test::Program;
using test::TwoRanks;
using testing::AnyOf;
using testing::HasSubstr;

struct Ended {
  std::vector<int> codes;
  /// The standard error of all ranks.
  std::string err;
};

class RanksTest : public ::testing::Test {
 protected:
  /// Starts one rank by hand for each entry of `arguments`, with the entry as additional arguments,
  /// and waits for all ranks. @param numbers the numbers of the ranks; empty: 0, 1, ...
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

  /// Even on a busy machine, ranks that start at the same time meet within this time.
  static inline const std::vector<std::string> kShortWait = {"--dist.join_timeout_s=10"};

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
  EXPECT_TRUE(ranks_.weights("launcher") == ranks_.weights("hand")) << "the weights differ";
  for (const std::string& told : {launcher.err, hand.err}) {
    EXPECT_THAT(told, Names("2 ranks", "1 host"));
    EXPECT_EQ(occurrences(told, "2 ranks"), 1) << "printed only by rank zero: " << told;
  }
}

TEST_F(RanksTest, TheOnlyTaskOfALauncherStartsTheRanksOfTheRecipe) {
  const std::vector<std::string> step = {
      "OMP_NUM_THREADS=1", "SLURM_PROCID=0",         "SLURM_NTASKS=1",
      "SLURM_LOCALID=0",   "SLURM_NODEID=0",         "SLURM_JOB_ID=1000",
      "SLURM_STEP_ID=0",   "SLURM_TASKS_PER_NODE=1", "SLURM_STEP_NODELIST=localhost"};
  const Ended ended = alone({"--training.distributed=1", "--dist.world_size=2"}, step);
  EXPECT_EQ(ended.codes[0], 0) << ended.err;
  EXPECT_THAT(ended.err, Names("2 ranks", "1 host"));
}

TEST_F(RanksTest, RanksWithDifferentRecipesAreRejected) {
  const Ended ended = by_hand({{}, {"--lr.lr=0.03"}}, 2);
  EXPECT_THAT(ended.codes, testing::Each(AnyOf(2, 13)));
  EXPECT_EQ(occurrences(ended.err, "error:"), 1) << ended.err;
  EXPECT_THAT(ended.err, Names("lr.lr", "0.03", "0.01"));
  EXPECT_FALSE(std::filesystem::exists(ranks_.folder("hand")));
}

TEST_F(RanksTest, RankZeroWritesTheResultFileOfAFailure) {
  const std::filesystem::path file =
      ranks_.folder("hand").parent_path().parent_path() / "result.json";
  const std::string option = "--result-json=" + file.string();
  const Ended ended = by_hand({{option}, {option, "--lr.lr=0.03"}}, 2);
  const auto result = nlohmann::json::parse(std::ifstream(file));
  EXPECT_EQ(result.at("exit_code"), ended.codes[0]) << ended.err;
  EXPECT_FALSE(result.at("error").get<std::string>().empty());
  EXPECT_EQ(result.at("params").at("lr.lr"), 0.01);
}

TEST_F(RanksTest, MissingRanksAreNamed) {
  const Ended ended = by_hand({kShortWait, kShortWait}, 4, {0, 2});
  EXPECT_THAT(ended.codes, testing::Each(6));
  EXPECT_EQ(occurrences(ended.err, "4 ranks"), 2) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("127.0.0.1:"));
  EXPECT_EQ(occurrences(ended.err, "ranks 1, 3"), 2) << ended.err;
}

TEST_F(RanksTest, ADuplicateRankIsRejected) {
  const Ended ended = by_hand({kShortWait, kShortWait, kShortWait}, 3, {0, 1, 1});
  EXPECT_THAT(ended.codes, testing::Each(6));
  EXPECT_THAT(ended.err, Names("rank 1"));
}

TEST_F(RanksTest, WithoutRankZeroTheAddressOfTheStoreIsNamed) {
  const Ended ended = by_hand({{"--dist.join_timeout_s=2"}}, 2, {1});
  EXPECT_EQ(ended.codes[0], 6);
  EXPECT_THAT(ended.err, testing::AllOf(Names("rank 0", "2 s"), HasSubstr("127.0.0.1:")));
  EXPECT_THAT(ended.err, testing::Not(HasSubstr("frame #")));
}

TEST_F(RanksTest, RanksOnAMissingGpuAreNotStarted) {
  const Ended ended =
      alone({"--dist.nproc=2", "--training.device=cuda"}, {"CUDA_VISIBLE_DEVICES="});
  EXPECT_EQ(ended.codes[0], 6) << ended.err;
  EXPECT_EQ(occurrences(ended.err, "training.device"), 1) << ended.err;
  EXPECT_FALSE(std::filesystem::exists(ranks_.folder("alone")));
}

TEST_F(RanksTest, WrongNumbersOfRanksAreRefused) {
  const auto fails = [&](const Ended& ended, const test::NamesMatcher& facts) {
    EXPECT_EQ(ended.codes[0], 2) << ended.err;
    EXPECT_THAT(ended.err, facts);
  };
  fails(alone({"--dist.nproc=0"}), Names("dist.nproc", "auto", 1, 4096, 0));
  fails(alone({"--dist.port=99999"}), Names("dist.port", 1, 65535, 99999));
  fails(alone({"--training.global_batch_size=7", "--dist.nproc=2"}),
        Names("training.global_batch_size", 2, 7));
  fails(alone({"--dist.nproc=8"}, TwoRanks::rank_environment(0, 2, 29500)),
        Names("dist.nproc", "torchrun", 2, 8));
  fails(alone({}, {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2",
                   "OMPI_COMM_WORLD_LOCAL_RANK=0", "OMPI_COMM_WORLD_LOCAL_SIZE=1"}),
        Names("dist.address", "rank 0", "Open MPI", "localhost"));
}

}  // namespace
}  // namespace precast::tools
