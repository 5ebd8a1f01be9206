#include "tools/experiments/grid/ranking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "framework/core/file.h"
#include "framework/core/file_lock.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tools/experiments/trial/trial.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

class RankingTest : public ::testing::Test {
 protected:
  RankingTest() {
    sweep_.folder = folder_.path();
    sweep_.varied = {"lr.lr"};
  }
  void add(const std::string& lr, const std::string& seed, TrialStatus status,
           const ordered_json& value = {}) {
    const Trial& trial = sweep_.trials.emplace_back(
        Trial{lr + "-" + seed, {}, {{"lr.lr", lr}, {"training.seed", seed}}, folder_ / "runs"});
    states_[trial.id] = {.status = status, .starts = 1, .figures = {{"top_1", value}}};
  }
  ordered_json ranking() const { return describe_grid(sweep_, states_).at("ranking"); }
  std::string place(std::size_t at) const { return ranking().at(at).at("settings").at("lr.lr"); }

  test::TemporaryFolder folder_;
  Sweep sweep_;
  std::map<std::string, TrialState> states_;
};

TEST_F(RankingTest, IncompleteCombinationsRankBehindCompleteOnes) {
  add("9", "0", TrialStatus::done, 0.9);
  add("9", "1", TrialStatus::diverged);
  add("1", "0", TrialStatus::done, 0.5);
  add("1", "1", TrialStatus::done, 0.7);
  add("2", "0", TrialStatus::done, 0.8);
  add("2", "1", TrialStatus::done, 0.6);
  add("3", "0", TrialStatus::failed);
  add("3", "1", TrialStatus::failed);
  EXPECT_EQ(place(0) + place(1) + place(2) + place(3), "2193");
  EXPECT_EQ(ranking().at(2).at("complete"), false);
  EXPECT_EQ(ranking_table(describe_grid(sweep_, states_)),
            "rank   lr.lr   top_1              trials\n"
            "1      2       0.7000 +- 1.2706   2 done\n"
            "2      1       0.6000 +- 1.2706   2 done\n"
            "-      9       0.9000             1 diverged, 1 done\n"
            "-      3       -                  2 failed\n");
}

TEST_F(RankingTest, SmallerLossesAreBetter) {
  sweep_.metric = "val_loss";
  sweep_.maximise = false;
  add("1", "0", TrialStatus::done);
  states_["1-0"].figures = {{"val_loss", 2.5}};
  add("2", "0", TrialStatus::done);
  states_["2-0"].figures = {{"val_loss", 1.5}};
  EXPECT_EQ(place(0), "2");
}

TEST_F(RankingTest, OneTrialHasNoInterval) {
  add("1", "0", TrialStatus::done, 0.5);
  EXPECT_TRUE(ranking().at(0).at("half_width_95").is_null());
  EXPECT_EQ(mean_text(ranking().at(0), "top_1", "±"), "0.5000");
}

TEST_F(RankingTest, EqualMeansHaveTheSameRank) {
  add("1", "0", TrialStatus::done, 0.5);
  add("2", "0", TrialStatus::done, 0.75);
  add("3", "0", TrialStatus::done, 0.5);
  add("4", "0", TrialStatus::done, 0.25);
  add("5", "0", TrialStatus::failed);
  std::vector<std::string> ranks;
  for (const ordered_json& entry : ranking())
    ranks.push_back(entry.at("settings").at("lr.lr").get<std::string>() + ":" + rank_text(entry));
  EXPECT_THAT(ranks, testing::ElementsAre("2:1", "1:2", "3:2", "4:4", "5:-"));
  EXPECT_TRUE(ranking().at(4).at("rank").is_null());
}

TEST_F(RankingTest, SmallAndLargeFiguresThatAreNoAccuraciesKeepTheirDigits) {
  EXPECT_EQ(figure_text(0.25, "top_1"), "0.2500");
  EXPECT_EQ(figure_text(0.0000125, "mse"), "1.25e-05");
  EXPECT_EQ(figure_text(0.03125, "eval_minutes"), "0.03125");
  EXPECT_EQ(figure_text(nullptr, "val_loss"), "-");
}

TEST_F(RankingTest, AFigureThatWasNotFiniteIsNoResult) {
  add("1", "0", TrialStatus::done, 0.5);
  add("2", "0", TrialStatus::done, nullptr);
  EXPECT_EQ(place(0), "1");
  EXPECT_EQ(ranking().at(1).at("count"), 0);
}

TEST_F(RankingTest, ARankThatWasKilledIsTheReasonUnlessARankPrintedAnError) {
  add("1", "0", TrialStatus::failed);
  states_["1-0"].exit_code = 128 + SIGKILL;
  const std::filesystem::path run = folder_ / "runs/1-0";
  create_folders(run);
  const std::string killed =
      "launcher: rank 1 (pid 123) was killed by signal 9 (SIGKILL)\n"
      "launcher: rank 0 (pid 122) did not end within 15 s and is killed\n";
  const auto reason = [&](const std::string& output) {
    write_file(run / "output", output);
    return describe_grid(sweep_, states_).at("trials").at(0).at("reason").get<std::string>();
  };
  EXPECT_THAT(reason("epoch 1/9\n" + killed), test::Names("SIGKILL", "rank 1", "123"));
  EXPECT_THAT(reason(killed), testing::Not(testing::HasSubstr("rank 0")));
  EXPECT_THAT(reason("[rank 1] error: missing_x\n" + killed), testing::EndsWith(": missing_x"));
  const std::string before = "error: of an earlier attempt\n";
  states_["1-0"].output_begin = before.size();
  EXPECT_THAT(reason(before + killed), test::Names("rank 1"));
  EXPECT_THAT(reason(before), testing::Not(testing::HasSubstr("attempt")));
}

TEST_F(RankingTest, ATrialRunsWhileItsLockIsHeld) {
  add("1", "0", TrialStatus::waiting);
  states_["1-0"].open_since = 1;
  const std::filesystem::path run = folder_ / "runs/1-0";
  create_folders(run);
  const auto status = [&] {
    return describe_grid(sweep_, states_).at("trials").at(0).at("status");
  };
  {
    const auto lock = FileLock::try_lock(run / "lock");
    EXPECT_EQ(status(), "running");
  }
  EXPECT_EQ(status(), "waiting") << "interrupted";
}

}  // namespace
}  // namespace precast::tools
