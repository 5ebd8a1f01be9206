#include "tools/experiments/grid/watcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "framework/core/file.h"
#include "tests/support/temporary_folder.h"

namespace precast::tools {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class GridWatcherTest : public ::testing::Test {
 protected:
  void start(EarlyStopOptions::Rule rule) {
    sweep_.folder = folder_.path();
    sweep_.recipe = folder_ / "r.yaml";
    write_file(sweep_.recipe, "training: {epochs: 1}\n");
    file_.emplace(sweep_);
    sweep_.early_stop = {.rule = rule, .reduction = 2};
    for (const char* id : {"a", "b", "c", "d", "e", "f"})
      sweep_.trials.push_back({.id = id, .recipe = {}, .settings = {}, .folder = folder_ / "runs"});
  }
  const Trial& trial(const std::string& id) const {
    return *std::ranges::find(sweep_.trials, id, &Trial::id);
  }
  /// Logs an epoch of that trial. @param top_1 as JSON text.
  void log(const std::string& id, int epoch, const std::string& top_1) {
    create_folders(trial(id).run_folder());
    std::ofstream(trial(id).run_folder() / "log", std::ios::app)
        << R"({"top_1": )" << top_1 << R"(, "epoch": )" << epoch << "}\n";
    states_[id].starts = 1;
  }
  /// A new watcher, as after each start of the grid.
  GridWatcher watcher() { return {sweep_, *file_, states_, journal_, 1}; }
  static std::vector<std::string> ids(const std::vector<const Trial*>& trials) {
    std::vector<std::string> all;
    for (const Trial* one : trials) all.push_back(one->id);
    return all;
  }

  test::TemporaryFolder folder_;
  Journal journal_{folder_ / "results.jsonl"};
  Sweep sweep_;
  std::optional<SweepFile> file_;
  std::map<std::string, TrialState> states_;
};

TEST_F(GridWatcherTest, APassedRungIsNotComparedAgainAfterAKill) {
  start(EarlyStopOptions::Rule::asha);
  log("a", 0, "0.9");
  log("b", 0, "0.5");
  log("c", 0, "0.3");
  log("d", 0, "0.2");
  for (const char* id : {"b", "c", "d"}) states_[id].status = TrialStatus::stopped;
  EXPECT_EQ(watcher().trial_to_resume(), "b");
  states_["b"].status = TrialStatus::waiting;  // started, and killed with the grid
  log("e", 0, "0.8");
  log("f", 0, "0.7");
  states_["f"].status = TrialStatus::stopped;
  EXPECT_THAT(ids(watcher().missed_early_stops()), IsEmpty());
}

TEST_F(GridWatcherTest, EarlyStopsThatAKilledGridMissedAreFound) {
  start(EarlyStopOptions::Rule::asha);
  log("a", 0, "0.9");
  log("b", 0, "0.5");
  log("c", 0, "0.4");
  write_file(trial("c").run_folder() / "summary.json", "{}");
  EXPECT_THAT(ids(watcher().missed_early_stops()), ElementsAre("b"));
}

TEST_F(GridWatcherTest, AFigureThatIsNotFiniteIsTheWorst) {
  start(EarlyStopOptions::Rule::asha);
  log("a", 0, "0.1");
  log("b", 0, "null");
  EXPECT_THAT(ids(watcher().missed_early_stops()), ElementsAre("b"));
}

TEST_F(GridWatcherTest, EpochsOfEarlierStartsStopNothingAndLaterOnesAreJudgedOnce) {
  start(EarlyStopOptions::Rule::median);
  for (const char* id : {"a", "b", "c"}) {
    log(id, 0, "0.9");
    log(id, 1, "0.9");
  }
  log("d", 0, "0.1");
  GridWatcher grid = watcher();
  EXPECT_FALSE(grid.should_stop(trial("d")));
  log("d", 1, "0.1");
  grid.ended(trial("d"), {{"status", "waiting"}});  // reads its log
  EXPECT_TRUE(grid.should_stop(trial("d")));
  EXPECT_FALSE(grid.should_stop(trial("d")));
}

TEST_F(GridWatcherTest, AnEpochThatTheDisplayHasReadFirstIsJudgedByItsFigure) {
  start(EarlyStopOptions::Rule::asha);
  log("a", 0, "0.9");
  log("a", 1, "0.9");
  log("b", 0, "0.95");
  GridWatcher grid = watcher();
  log("b", 1, "0.1");
  grid.PoolDisplay::ended(trial("b"), {{"status", "waiting"}});  // reads its log
  EXPECT_TRUE(grid.should_stop(trial("b")));
}

TEST_F(GridWatcherTest, EpochsThatAResumedRunWritesAgainReplaceTheOldOnes) {
  start(EarlyStopOptions::Rule::asha);
  log("a", 0, "0.9");
  log("a", 1, "0.9");
  log("b", 0, "0.95");
  log("b", 1, "0.95");
  GridWatcher grid = watcher();
  std::filesystem::remove(trial("b").run_folder() / "log");
  log("b", 0, "0.95");
  grid.ended(trial("b"), {{"status", "waiting"}});  // reads its log
  log("b", 1, "0.1");
  log("b", 2, "0.1");
  EXPECT_TRUE(grid.should_stop(trial("b")));
}

}  // namespace
}  // namespace precast::tools
