#include "tools/report/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "framework/core/error.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/report/run_folder_files.h"

namespace precast::tools {
namespace {

using test::Names;
using test::sample_log;
using test::write_run;
using ::testing::DoubleEq;
using ::testing::ElementsAre;

using ::testing::SizeIs;

class RunRecordTest : public ::testing::Test {
 protected:
  RunRecord load(const std::string& log) { return load_run(write_run(folder_ / "r", log)); }
  test::TemporaryFolder folder_;
};

TEST_F(RunRecordTest, ReadsEpochsAndSteps) {
  const RunRecord run = load(sample_log(2));
  EXPECT_EQ(run.name, "r");
  ASSERT_THAT(run.epochs, SizeIs(2));
  ASSERT_THAT(run.steps, SizeIs(4));
  EXPECT_DOUBLE_EQ(run.steps[3].epochs_done, 1.5);
  EXPECT_DOUBLE_EQ(run.epochs[1].epochs_done, 2);
  EXPECT_DOUBLE_EQ(run.top_1(), 0.5);
  EXPECT_DOUBLE_EQ(run.train_minutes(), 20.0 / 60);
  EXPECT_DOUBLE_EQ(run.images_per_second(), 64);
  EXPECT_DOUBLE_EQ(run.wait_share(), 0.2);
  EXPECT_FALSE(run.finished());
  EXPECT_THAT(run.notes, SizeIs(0));
  EXPECT_EQ(load_run((folder_ / "r").string() + "/").name, "r");
}

TEST_F(RunRecordTest, ANestedRunIsNamedByItsFullId) {
  const std::filesystem::path folder = folder_ / "exp/seed0";
  std::filesystem::create_directories(folder);
  write_run(folder, sample_log(1));
  write_file(folder / "params.json", R"({"logging.run_id":"exp/seed0"})");
  EXPECT_EQ(load_run(folder).name, "exp/seed0");
  EXPECT_EQ(load_run(folder.string() + "/").name, "exp/seed0");
  std::filesystem::rename(folder, folder_ / "renamed");
  EXPECT_EQ(load_run(folder_ / "renamed").name, "renamed");
}

TEST_F(RunRecordTest, ARunWithASummaryHasFinished) {
  write_run(folder_ / "r", sample_log(1));
  write_file(folder_ / "r/summary.json", R"({"top_1":0.75,"train_minutes":2,"wait_minutes":1})");
  const RunRecord run = load_run(folder_ / "r");
  EXPECT_TRUE(run.finished());
  EXPECT_DOUBLE_EQ(run.top_1(), 0.75);
  EXPECT_DOUBLE_EQ(run.wait_share(), 0.5);
}

TEST_F(RunRecordTest, SkippedStepsAreNoted) {
  std::string log = sample_log(2);
  for (const char* steps : {R"("steps":10,)", R"("steps":20,)"})
    log.insert(log.find(steps), R"("skipped_steps":3,)");
  EXPECT_THAT(load(log).notes, ElementsAre(Names(6)));
  // The log may lack epochs.
  write_file(folder_ / "r/summary.json", R"({"steps":20,"skipped_steps":7})");
  EXPECT_THAT(load(log).notes, ElementsAre(Names(7)));
  write_file(folder_ / "r/summary.json", R"({"steps":20,"skipped_steps":0})");
  EXPECT_THAT(load(sample_log(2)).notes, SizeIs(0));
}

TEST_F(RunRecordTest, TheSummaryOfARunThatWasContinuedIsLeftOut) {
  const std::string second = sample_log(2).substr(sample_log(1).size());
  const std::string first_step = second.substr(0, second.find('\n') + 1);
  for (const std::string& log : {sample_log(2), sample_log(1) + first_step}) {
    write_run(folder_ / "r", log);
    write_file(folder_ / "r/summary.json", R"({"top_1":0.75,"steps":10})");
    const RunRecord run = load_run(folder_ / "r");
    EXPECT_FALSE(run.finished());
    EXPECT_DOUBLE_EQ(run.top_1(), log == sample_log(2) ? 0.5 : 0.25);
    EXPECT_THAT(run.notes, ElementsAre(Names("summary.json", 10)));
  }
  // run.json is written when the run is continued, before its first step.
  write_run(folder_ / "r", sample_log(1));
  write_file(folder_ / "r/run.json", R"({"epochs":2,"steps_per_epoch":10})");
  EXPECT_FALSE(load_run(folder_ / "r").finished());
  // The run has finished again.
  write_run(folder_ / "r", sample_log(2));
  write_file(folder_ / "r/summary.json", R"({"top_1":0.75,"steps":20})");
  const RunRecord run = load_run(folder_ / "r");
  EXPECT_TRUE(run.finished());
  EXPECT_DOUBLE_EQ(run.top_1(), 0.75);
  EXPECT_THAT(run.notes, SizeIs(0));
  // The run trained 10 steps in its first epoch and, continued with smaller batches, 14 in its
  // second.
  write_file(folder_ / "r/run.json", R"({"epochs":2,"steps_per_epoch":14})");
  write_file(folder_ / "r/summary.json", R"({"top_1":0.75,"steps":24})");
  EXPECT_TRUE(load_run(folder_ / "r").finished());
}

TEST_F(RunRecordTest, ARunThatIsContinuedWithLargerBatchesHasNotFinished) {
  // 4 epochs of 4 steps are fewer steps than the run trained before.
  write_run(folder_ / "r", sample_log(2));
  write_file(folder_ / "r/summary.json", R"({"top_1":0.75,"epochs":2,"steps":20})");
  write_file(folder_ / "r/run.json", R"({"epochs":4,"steps_per_epoch":4})");
  const RunRecord run = load_run(folder_ / "r");
  EXPECT_FALSE(run.finished());
  EXPECT_DOUBLE_EQ(run.top_1(), 0.5);
  EXPECT_THAT(run.notes, ElementsAre(Names("summary.json", 20)));
  write_file(folder_ / "r/run.json", R"({"epochs":2,"steps_per_epoch":10})");
  EXPECT_TRUE(load_run(folder_ / "r").finished());
}

TEST_F(RunRecordTest, StepsArePlacedByTheLengthOfTheirOwnEpoch) {
  // Epochs of 10 steps; from the third on, batches are twice as large.
  const std::string third =
      R"({"step":20,"epoch":2,"epoch_step":0}
{"step":24,"epoch":2,"epoch_step":4}
{"epoch":2,"steps":25}
{"step":26,"epoch":3,"epoch_step":1}
)";
  write_run(folder_ / "r", sample_log(2) + third);
  write_file(folder_ / "r/run.json", R"({"epochs":4,"steps_per_epoch":5})");
  std::vector<double> places;
  for (const RunRow& row : load_run(folder_ / "r").steps) places.push_back(row.epochs_done);
  EXPECT_THAT(places, ElementsAre(DoubleEq(0), DoubleEq(0.5), DoubleEq(1), DoubleEq(1.5),
                                  DoubleEq(2), DoubleEq(2.8), DoubleEq(3.2)));
}

TEST_F(RunRecordTest, TheSpeedOfAnUnfinishedRunCountsNoStepWithoutItsTime) {
  const std::string log = sample_log(2);
  const auto lines = [&](int count) {
    std::size_t end = 0;
    while (count-- > 0) end = log.find('\n', end) + 1;
    return load(log.substr(0, end)).images_per_second();
  };
  EXPECT_TRUE(std::isnan(lines(1))) << "the time of the only step is not known";
  EXPECT_DOUBLE_EQ(lines(2), 64);
  EXPECT_DOUBLE_EQ(lines(3), 64);
  EXPECT_DOUBLE_EQ(lines(5), 64);
}

TEST_F(RunRecordTest, ATruncatedLogGivesItsCompleteLines) {
  const std::string log = sample_log(2);
  for (std::size_t size = 0; size <= log.size(); ++size) {
    const std::string cut = log.substr(0, size);
    const RunRecord run = load(cut);
    const auto lines = static_cast<std::size_t>(std::ranges::count(cut, '\n'));
    const std::size_t rows = run.epochs.size() + run.steps.size();
    const bool between_lines = cut.empty() || cut.back() == '\n';
    // A last line that lacks only its newline is complete.
    EXPECT_GE(rows, lines) << size;
    EXPECT_LE(rows, lines + 1) << size;
    EXPECT_EQ(run.notes.size(), between_lines || rows == lines + 1 ? 0U : 1U) << size;
  }
}

TEST_F(RunRecordTest, LinesThatAreNoRecordsAreCountedAndLeftOut) {
  const RunRecord run = load(
      std::string("garbage\n[1]\n{\"epoch\":\"x\"}\n\xff\xfe\n{}\n\n{\"epoch\":1,\"step\":[]}\n") +
      sample_log(1));
  EXPECT_THAT(run.epochs, SizeIs(1));
  EXPECT_THAT(run.steps, SizeIs(2));
  ASSERT_THAT(run.notes, SizeIs(1));
  EXPECT_THAT(run.notes[0], Names(7, 10));
}

TEST_F(RunRecordTest, LaterRecordsReplaceEarlierOnesOfTheSameEpoch) {
  const RunRecord run = load(sample_log(3) + R"({"epoch":1,"top_1":0.9,"train_time":15})" + "\n");
  ASSERT_THAT(run.epochs, SizeIs(2));
  EXPECT_DOUBLE_EQ(run.epochs[1].top_1, 0.9);
  EXPECT_THAT(load(sample_log(3) + sample_log(1)).epochs, SizeIs(1));
  EXPECT_THAT(load(sample_log(3) + sample_log(1)).steps, SizeIs(2));
}

TEST_F(RunRecordTest, EpochsThatTheLogLacksAreNoted) {
  const std::size_t first = sample_log(1).size(), second = sample_log(2).size();
  EXPECT_THAT(load(sample_log(3).substr(first)).notes, ElementsAre(Names("log", 1, 3, 2)));
  const std::string steps = sample_log(3).substr(second);
  EXPECT_THAT(load(steps.substr(0, steps.find('\n') + 1)).notes, ElementsAre(Names("log", 2, 0)));
  EXPECT_EQ(missing_epochs(load(sample_log(2)), 2), "");
  EXPECT_THAT(missing_epochs(load(sample_log(2)), 5), Names(1, 5, 2));
  // The run has finished, and its log was truncated afterwards.
  write_run(folder_ / "r", sample_log(1));
  write_file(folder_ / "r/run.json", R"({"epochs":2,"steps_per_epoch":10})");
  write_file(folder_ / "r/summary.json", R"({"top_1":0.75,"steps":20})");
  EXPECT_THAT(load_run(folder_ / "r").notes, ElementsAre(Names("log", 2, 1)));
}

TEST_F(RunRecordTest, NullsAreMissingNumbers) {
  const RunRecord run = load("{\"epoch\":0,\"train_loss\":null,\"top_1\":0.5}\n");
  EXPECT_TRUE(std::isnan(run.epochs[0].loss));
  EXPECT_TRUE(std::isnan(run.train_minutes()));
}

TEST_F(RunRecordTest, DamagedFilesBesideTheLogAreNoted) {
  write_run(folder_ / "r", sample_log(1));
  write_file(folder_ / "r/params.json", "{\"a\":");
  const RunRecord run = load_run(folder_ / "r");
  EXPECT_TRUE(run.params.empty());
  EXPECT_THAT(run.notes, ElementsAre(Names("params.json")));
}

TEST_F(RunRecordTest, AFolderOfRunsMeansAllOfThem) {
  write_run(folder_ / "b", sample_log(1));
  write_run(folder_ / "a", sample_log(1));
  create_folders(folder_ / "no-run");
  EXPECT_THAT(find_runs(folder_.path()), ElementsAre(folder_ / "a", folder_ / "b"));
  EXPECT_THAT(find_runs(folder_ / "a"), ElementsAre(folder_ / "a"));
  EXPECT_THROW((void)find_runs(folder_ / "no-run"), IoError);
  EXPECT_THROW((void)find_runs(folder_ / "nowhere"), IoError);
  EXPECT_THROW((void)load_run(folder_ / "no-run"), IoError);
}

TEST_F(RunRecordTest, RunsInFoldersOfFoldersAreFound) {
  write_run(folder_ / "runs/exp/seed1", sample_log(1));
  write_run(folder_ / "runs/exp/seed0", sample_log(1));
  write_run(folder_ / "runs/single", sample_log(1));
  // A folder inside a run folder is not a separate run.
  write_run(folder_ / "runs/single/copy", sample_log(1));
  std::filesystem::create_directory_symlink(folder_ / "runs", folder_ / "runs/exp/loop");
  EXPECT_THAT(
      find_runs(folder_ / "runs"),
      ElementsAre(folder_ / "runs/exp/seed0", folder_ / "runs/exp/seed1", folder_ / "runs/single"));
  EXPECT_THAT(find_runs(folder_ / "runs/exp"), SizeIs(2));
}

TEST_F(RunRecordTest, AFolderThatCannotBeListedIsNamed) {
  if (::geteuid() == 0) GTEST_SKIP() << "root can list every folder";
  write_run(folder_ / "runs/a", sample_log(1));
  create_folders(folder_ / "runs/locked");
  std::filesystem::permissions(folder_ / "runs/locked", std::filesystem::perms::none);
  EXPECT_THAT([&] { (void)find_runs(folder_ / "runs"); },
              ::testing::ThrowsMessage<IoError>(Names((folder_ / "runs/locked").string())));
  std::filesystem::permissions(folder_ / "runs/locked", std::filesystem::perms::owner_all);
}

TEST_F(RunRecordTest, TheFolderOfAGridMeansItsTrials) {
  write_run(folder_ / "grid/runs/b", sample_log(1));
  write_run(folder_ / "grid/runs/a", sample_log(1));
  write_run(folder_ / "grid/check", sample_log(1));
  EXPECT_THAT(find_runs(folder_ / "grid"), SizeIs(3)) << "no sweep.json";
  write_file(folder_ / "grid/sweep.json", "{}");
  EXPECT_THAT(find_runs(folder_ / "grid"),
              ElementsAre(folder_ / "grid/runs/a", folder_ / "grid/runs/b"));
}

TEST_F(RunRecordTest, RatesAreThoseBetweenRows) {
  const RunRecord run = load(sample_log(3));
  EXPECT_THAT(rates(run.epochs, &RunRow::images),
              ElementsAre(DoubleEq(64), DoubleEq(64), DoubleEq(64)));
  EXPECT_THAT(rates(run.epochs, &RunRow::wait_seconds),
              ElementsAre(DoubleEq(0.2), DoubleEq(0.2), DoubleEq(0.2)));
  // If a log begins in the middle of a run, the duration of its first epoch is unknown.
  const std::vector<RunRow> rest(run.epochs.begin() + 1, run.epochs.end());
  EXPECT_TRUE(std::isnan(rates(rest, &RunRow::images)[0]));
}

TEST(LastOfTest, IsTheNewestKnownValue) {
  std::vector<RunRow> rows(3);
  rows[0].decoding = 3;
  rows[1].decoding = 5;
  EXPECT_DOUBLE_EQ(last_of(rows, &RunRow::decoding), 5);
  EXPECT_TRUE(std::isnan(last_of(rows, &RunRow::ahead)));
}

}  // namespace
}  // namespace precast::tools
