// What happens when a rank dies or is asked to stop, and how such a run resumes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/tools/app/two_ranks.h"

namespace precast::tools {
namespace {

using test::eventually;
using test::Names;
using test::Program;
using Clock = std::chrono::steady_clock;

class RankRuns : public ::testing::Test {
 protected:
  test::TwoRanks ranks_;
};

constexpr int kPreempted = 85;

struct Death {
  const char* failpoint;
  int exit_code;
  const char* cause;
};

class RankDeathTest : public RankRuns, public testing::WithParamInterface<Death> {};

TEST_P(RankDeathTest, EndsAllRanksAndReportsTheCauseOnce) {
  const auto start = Clock::now();
  Program run(ranks_.command("r", {"--dist.nproc=2"}),
              {std::string("PRECAST_FAILPOINTS=") + GetParam().failpoint});
  EXPECT_EQ(run.wait(), GetParam().exit_code) << run.err;
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(60));
  EXPECT_EQ(test::occurrences(run.err, GetParam().cause), 1) << run.err;
  EXPECT_THAT(run.err, Names(GetParam().cause));
  // A rank that throws reports its own error. The launcher reports a dead rank, and the other ranks
  // print nothing.
  EXPECT_EQ(test::occurrences(run.err, "error: "), GetParam().exit_code == 5 ? 1 : 0) << run.err;
}

INSTANTIATE_TEST_SUITE_P(
    KindsAndFailpoints, RankDeathTest,
    testing::Values(Death{"trainer.before_step=kill@1%1", 128 + SIGKILL, "SIGKILL"},
                    Death{"trainer.before_step=kill@2%0", 128 + SIGKILL, "SIGKILL"},
                    Death{"evaluator.before_batch=kill@1%1", 128 + SIGKILL, "SIGKILL"},
                    Death{"checkpoint.before_file=kill@1%0", 128 + SIGKILL, "SIGKILL"},
                    Death{"trainer.before_step=exit@1%0", 1, "code 1"},
                    Death{"trainer.before_step=exit@2%1", 1, "code 1"},
                    Death{"evaluator.before_batch=exit@1%0", 1, "code 1"},
                    Death{"checkpoint.before_file=exit@1%0", 1, "code 1"},
                    Death{"trainer.before_step=error@1%1", 5, "trainer.before_step"},
                    Death{"trainer.before_step=error@2%0", 5, "trainer.before_step"},
                    Death{"evaluator.before_batch=error@1%1", 5, "evaluator.before_batch"}));

using RankFailureTest = RankRuns;

TEST_F(RankFailureTest, ADiskThatRefusesACheckpointDoesNotEndTheRun) {
  Program run(ranks_.command("r", {"--dist.nproc=2"}),
              {"PRECAST_FAILPOINTS=checkpoint.before_file=error@1%0"});
  EXPECT_EQ(run.wait(), 0) << run.err;
  EXPECT_THAT(run.err, Names("warning", "checkpoint.before_file"));
}

TEST_F(RankFailureTest, InvalidInputIsReportedOnceBeforeAnyRankStarts) {
  Program run(ranks_.command("r", {"--dist.nproc=2", "--training.epoch=3"}));
  EXPECT_EQ(run.wait(), 2);
  EXPECT_EQ(test::occurrences(run.err, "training.epoch"), 2) << run.err;  // the key, and the hint
  Program missing(ranks_.command("r", {"--dist.nproc=2", "--data.train_dataset=none.beton"}));
  EXPECT_EQ(missing.wait(), 5);
  EXPECT_EQ(test::occurrences(missing.err, "none.beton"), 1) << missing.err;
}

class RankStopTest : public RankRuns {
 protected:
  /// Stops a run with `failpoint`, resumes it, and compares it with an uninterrupted run.
  void stop_and_resume(const std::string& failpoint, const std::vector<std::string>& more) {
    Program uncut(ranks_.command("uncut", more));
    ASSERT_EQ(uncut.wait(), 0) << uncut.err;
    Program cut(ranks_.command("cut", more), {"PRECAST_FAILPOINTS=" + failpoint});
    ASSERT_EQ(cut.wait(), kPreempted) << cut.err;
    EXPECT_THAT(cut.err, Names("--checkpoint.resume=auto"));
    resume_and_compare(more);
  }
  /// The bytes of the optimiser file in the newest checkpoint.
  [[nodiscard]] std::string last_optimizer(const std::string& run) const {
    std::string newest;
    for (const auto& entry :
         std::filesystem::directory_iterator(ranks_.folder(run) / "checkpoints"))
      newest = std::max(newest, entry.path().filename().string());
    return ranks_.bytes(run, "checkpoints/" + newest + "/optimizer.safetensors");
  }
  void resume_and_compare(std::vector<std::string> more) {
    more.emplace_back("--checkpoint.resume=auto");
    Program rest(ranks_.command("cut", more));
    ASSERT_EQ(rest.wait(), 0) << rest.err;
    EXPECT_THAT(rest.err, testing::ContainsRegex("step [1-9]"))
        << "must not start again at the first step";
    EXPECT_EQ(ranks_.weights("cut"), ranks_.weights("uncut"));
    EXPECT_EQ(ranks_.rows("cut"), ranks_.rows("uncut"));
    EXPECT_EQ(last_optimizer("cut"), last_optimizer("uncut"));
    EXPECT_FALSE(last_optimizer("cut").empty());
  }
};

/// The children that SIGSTOP has stopped.
std::vector<pid_t> stopped_children(pid_t parent) {
  std::vector<pid_t> stopped;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::string stat;
    std::getline(std::ifstream(entry.path() / "stat"), stat);
    // `4711 (its name) T 4710 ...`
    if (stat.find(") T " + std::to_string(parent) + " ") != std::string::npos)
      stopped.push_back(std::stoi(stat));
  }
  return stopped;
}

/// Whether a signal is pending for a stopped process.
bool is_pending(pid_t process, int signal) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("ShdPnd:"))
      return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
  }
  return false;
}

const std::vector<std::string> kTwoRanks = {"--dist.nproc=2", "--methods=[{ema: {decay: 0.9}}]"};

TEST_F(RankStopTest, ASignalToOneRankStopsAllAtTheSameStep) {
  stop_and_resume("trainer.before_step=term@2%1", kTwoRanks);
}

TEST_F(RankStopTest, ASignalInAnEvaluationStopsAll) {
  stop_and_resume("evaluator.before_batch=term@1%0",
                  {"--dist.nproc=2", "--validation.batch_size=2"});
}

TEST_F(RankStopTest, ASignalWhileASourcePreparesAPassStopsAll) {
  stop_and_resume("trainer.before_pass=term@2%1", kTwoRanks);
}

TEST_F(RankStopTest, ASignalBeforeAnEvaluationStopsAll) {
  stop_and_resume("evaluator.before_pass=term@2%0", kTwoRanks);
}

TEST_F(RankStopTest, ASignalToTheLauncherStopsAll) {
  Program uncut(ranks_.command("uncut", kTwoRanks));
  ASSERT_EQ(uncut.wait(), 0) << uncut.err;
  Program cut(ranks_.command("cut", kTwoRanks),
              {"PRECAST_FAILPOINTS=trainer.before_step=stop@3%1"});
  ASSERT_TRUE(eventually([&] { return !stopped_children(cut.id()).empty(); }));
  const pid_t rank = stopped_children(cut.id()).front();
  ::kill(cut.id(), SIGUSR1);
  EXPECT_TRUE(eventually([&] { return is_pending(rank, SIGUSR1); }))
      << "the launcher forwards the signal";
  ::kill(rank, SIGCONT);
  ASSERT_EQ(cut.wait(), kPreempted) << cut.err;
  resume_and_compare(kTwoRanks);
}

TEST_F(RankStopTest, ASignalToTheLauncherBeforeTheFirstStepStopsAll) {
  std::vector<std::string> more = kTwoRanks;
  more.emplace_back("--data.in_memory=2");
  Program uncut(ranks_.command("uncut", more));
  ASSERT_EQ(uncut.wait(), 0) << uncut.err;
  Program cut(ranks_.command("cut", more), {"PRECAST_FAILPOINTS=preload.before_dataset=stop@1"});
  ASSERT_TRUE(eventually([&] { return stopped_children(cut.id()).size() == 2; }));
  const std::vector<pid_t> ranks = stopped_children(cut.id());
  ::kill(cut.id(), SIGUSR1);
  for (const pid_t rank : ranks)
    EXPECT_TRUE(eventually([&] { return is_pending(rank, SIGUSR1); })) << rank;
  for (const pid_t rank : ranks) ::kill(rank, SIGCONT);
  ASSERT_EQ(cut.wait(), kPreempted) << cut.err;
  EXPECT_EQ(test::occurrences(cut.err, "--logging.run_id=cut"), 1) << cut.err;
  EXPECT_FALSE(std::filesystem::exists(ranks_.folder("cut") / "checkpoints"));
  more.emplace_back("--checkpoint.resume=auto");
  Program rest(ranks_.command("cut", more));
  ASSERT_EQ(rest.wait(), 0) << rest.err;
  EXPECT_EQ(ranks_.weights("cut"), ranks_.weights("uncut"));
}

struct EarlySignal {
  const char* name;
  const char* failpoint;
  std::vector<std::string> more;
};

class EarlySignalTest : public RankStopTest, public testing::WithParamInterface<EarlySignal> {
 protected:
  /// The bytes of all files of the checkpoints, by their paths.
  [[nodiscard]] std::map<std::string, std::string> checkpoints(const std::string& run) const {
    std::map<std::string, std::string> files;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(ranks_.folder(run) / "checkpoints")) {
      const auto name = entry.path().lexically_relative(ranks_.folder(run)).string();
      if (entry.is_regular_file()) files[name] = ranks_.bytes(run, name);
    }
    return files;
  }
};

TEST_P(EarlySignalTest, StopsARunBeforeItsFirstStepAndLeavesTheCheckpoint) {
  std::vector<std::string> more = GetParam().more;
  more.emplace_back("--data.in_memory=2");
  Program uncut(ranks_.command("uncut", more));
  ASSERT_EQ(uncut.wait(), 0) << uncut.err;
  Program cut(ranks_.command("cut", more), {"PRECAST_FAILPOINTS=trainer.before_step=term@3"});
  ASSERT_EQ(cut.wait(), kPreempted) << cut.err;
  const auto saved = checkpoints("cut");
  const auto rows = ranks_.rows("cut");
  ASSERT_FALSE(saved.empty());
  std::vector<std::string> resumed = more;
  resumed.emplace_back("--checkpoint.resume=auto");
  Program again(ranks_.command("cut", resumed),
                {std::string("PRECAST_FAILPOINTS=") + GetParam().failpoint});
  EXPECT_EQ(again.wait(), kPreempted) << again.err;
  EXPECT_EQ(test::occurrences(again.err, "--checkpoint.resume=auto"), 1) << again.err;
  EXPECT_EQ(test::occurrences(again.err, "error: "), 0) << again.err;
  EXPECT_TRUE(checkpoints("cut") == saved);
  EXPECT_EQ(ranks_.rows("cut"), rows);
  resume_and_compare(more);
}

INSTANTIATE_TEST_SUITE_P(
    Ranks, EarlySignalTest,
    testing::Values(EarlySignal{"One", "preload.before_dataset=term@1", {}},
                    EarlySignal{"OneOfTwo", "preload.before_dataset=term@1%1", kTwoRanks},
                    EarlySignal{"BothOfTwo", "preload.before_dataset=term@2", kTwoRanks}),
    [](const auto& tested) { return tested.param.name; });

TEST_F(RankStopTest, TheHintNamesANestedRunByItsFullName) {
  Program cut(ranks_.command("exp/seed0"), {"PRECAST_FAILPOINTS=trainer.before_step=term@3"});
  ASSERT_EQ(cut.wait(), kPreempted) << cut.err;
  EXPECT_THAT(cut.err, testing::HasSubstr("--logging.run_id=exp/seed0\n"));
  Program rest(ranks_.command("exp/seed0", {"--checkpoint.resume=auto"}));
  EXPECT_EQ(rest.wait(), 0) << rest.err;
  EXPECT_EQ(ranks_.rows("exp/seed0").size(), 2 * 6 + 2U);
}

TEST_F(RankStopTest, SeveralFilesTrainLikeTheirMergeAlsoAfterAMidEpochResume) {
  const std::filesystem::path data = ranks_.folder("").parent_path().parent_path();
  const auto at = [&](const std::string& name) { return (data / name).string(); };
  const std::vector<std::vector<std::string>> commands = {
      {"select", at("d.beton"), at("a.beton"), "--samples", "14:24"},
      {"select", at("d.beton"), at("b.beton"), "--samples", "0:14"},
      {"merge", at("a.beton"), at("b.beton"), at("all.beton")},
      {"index", at("b.beton")}};
  for (std::vector<std::string> command : commands) {
    command.insert(command.begin(), test::bin_dir() + "/precast");
    Program program(command);
    ASSERT_EQ(program.wait(), 0) << program.err;
  }
  const auto with = [](const std::string& files) {
    return std::vector<std::string>{"--dist.nproc=2", "--data.train_dataset=" + files,
                                    "--data.val_dataset=" + files};
  };
  const std::vector<std::string> list = with("[" + at("a.beton") + "," + at("b.beton") + "]");
  Program uncut(ranks_.command("uncut", with(at("all.beton"))));
  ASSERT_EQ(uncut.wait(), 0) << uncut.err;
  Program cut(ranks_.command("cut", list), {"PRECAST_FAILPOINTS=trainer.before_step=term@2%1"});
  ASSERT_EQ(cut.wait(), kPreempted) << cut.err;
  for (const std::string& other :
       {"[" + at("b.beton") + "," + at("a.beton") + "]", at("a.beton"), at("all.beton")}) {
    std::vector<std::string> changed = with(other);
    changed.emplace_back("--checkpoint.resume=auto");
    Program run(ranks_.command("cut", changed));
    EXPECT_EQ(run.wait(), 4) << run.err;
    EXPECT_THAT(run.err, Names("dataset.train", "10 samples", "14 samples"));
  }
  resume_and_compare(list);
}

TEST_F(RankStopTest, AShardedOptimiserResumes) {
  stop_and_resume("trainer.before_step=term@2%1",
                  {"--dist.nproc=2", "--dist.zero=1", "--training.optimizer=adamw"});
}

TEST_F(RankStopTest, AParameterServerResumes) {
  stop_and_resume("trainer.before_step=term@2%1",
                  {"--dist.nproc=2", "--dist.variable_update=parameter_server"});
}

TEST_F(RankStopTest, OneProcessIsStoppedTheSameWay) {
  stop_and_resume("trainer.before_step=term@3", {});
}

/// Waits until a failpoint has stopped the process. @return false if it did not stop.
bool is_stopped(pid_t process) {
  return eventually([&] {
    std::string stat;
    std::getline(std::ifstream("/proc/" + std::to_string(process) + "/stat"), stat);
    return stat.find(") T ") != std::string::npos;
  });
}

TEST_F(RankStopTest, ASecondTrainingInTheSameFolderIsRefused) {
  Program first(ranks_.command("cut"), {"PRECAST_FAILPOINTS=trainer.before_step=stop@4"});
  ASSERT_TRUE(is_stopped(first.id()));
  const auto rows = ranks_.rows("cut");
  for (const char* resume : {"never", "auto"}) {
    Program second(ranks_.command("cut", {std::string("--checkpoint.resume=") + resume}));
    EXPECT_EQ(second.wait(), 5);
    EXPECT_THAT(second.err, Names(ranks_.folder("cut").string(), first.id()));
  }
  EXPECT_EQ(ranks_.rows("cut"), rows);
  ::kill(first.id(), SIGKILL);
  first.wait();
  Program rest(ranks_.command("cut", {"--checkpoint.resume=auto"}));
  EXPECT_EQ(rest.wait(), 0) << rest.err;
  EXPECT_EQ(ranks_.rows("cut").size(), 2 * 6 + 2U);
}

TEST_F(RankStopTest, AClosedTerminalStopsARunAsSigtermDoes) {
  Program uncut(ranks_.command("uncut"));
  ASSERT_EQ(uncut.wait(), 0) << uncut.err;
  Program cut(ranks_.command("cut"), {"PRECAST_FAILPOINTS=trainer.before_step=stop@4"});
  ASSERT_TRUE(is_stopped(cut.id()));
  ::kill(cut.id(), SIGHUP);
  ::kill(cut.id(), SIGCONT);
  ASSERT_EQ(cut.wait(), kPreempted) << cut.err;
  resume_and_compare({});
}

TEST_F(RankStopTest, AKilledRunResumesFromItsLastCheckpoint) {
  Program uncut(ranks_.command("uncut", {}));
  ASSERT_EQ(uncut.wait(), 0) << uncut.err;
  Program cut(ranks_.command("cut", {"--checkpoint.every_steps=2"}),
              {"PRECAST_FAILPOINTS=trainer.before_step=kill@10"});
  ASSERT_EQ(cut.wait(), 128 + SIGKILL);
  resume_and_compare({});
}

TEST_F(RankStopTest, AnotherNumberOfRanksResumesWithTheSameGlobalBatches) {
  Program cut(ranks_.command("cut", {"--training.global_batch_size=8"}),
              {"PRECAST_FAILPOINTS=trainer.before_step=term@1"});
  ASSERT_EQ(cut.wait(), kPreempted) << cut.err;
  Program rest(ranks_.command(
      "cut", {"--training.global_batch_size=8", "--dist.nproc=2", "--checkpoint.resume=auto"}));
  ASSERT_EQ(rest.wait(), 0) << rest.err;
  EXPECT_EQ(ranks_.rows("cut").size(), 2 * 3 + 2U);
}

TEST_F(RankStopTest, TheLossOfAnEpochCountsItsStepsEquallyWithAnyNumberOfRanks) {
  const std::pair<const char*, const char*> ranks[] = {{"2", "1"}, {"1", "2"}};
  for (const auto& [before, after] : ranks) {
    const std::string name = std::string("cut") + before;
    const auto train = [&](const std::string& nproc, std::vector<std::string> more) {
      more.insert(more.end(), {"--training.global_batch_size=4", "--training.epochs=1",
                               "--dist.nproc=" + nproc});
      return ranks_.command(name, more);
    };
    Program cut(train(before, {}), {"PRECAST_FAILPOINTS=trainer.before_step=term@3%0"});
    ASSERT_EQ(cut.wait(), kPreempted) << cut.err;
    Program rest(train(after, {"--checkpoint.resume=auto"}));
    ASSERT_EQ(rest.wait(), 0) << rest.err;
    const auto rows = ranks_.rows(name);
    ASSERT_EQ(rows.size(), 6 + 1U);
    double sum = 0;
    for (std::size_t step = 0; step < 6; ++step) sum += rows[step].at("loss").get<double>();
    EXPECT_NEAR(rows[6].at("train_loss").get<double>(), sum / 6, 1e-6);
  }
}

TEST_F(RankStopTest, AnotherRunsCheckpointIsRefusedWithTheDifference) {
  Program first(ranks_.command("cut", {}));
  ASSERT_EQ(first.wait(), 0) << first.err;
  Program other(ranks_.command("cut", {"--lr.lr=0.5", "--checkpoint.resume=auto"}));
  EXPECT_EQ(other.wait(), 4);
  EXPECT_THAT(other.err, Names("lr.lr", "0.01", "0.5"));
  Program forced(ranks_.command("cut", {"--lr.lr=0.5", "--checkpoint.resume=force"}));
  EXPECT_EQ(forced.wait(), 0) << forced.err;
  EXPECT_THAT(forced.err, Names("lr.lr", "0.01", "0.5"));
}

TEST_F(RankStopTest, AnotherBatchSizeContinuesTheEpochOrIsRefused) {
  Program cut(ranks_.command("cut"), {"PRECAST_FAILPOINTS=trainer.before_step=term@2"});
  ASSERT_EQ(cut.wait(), kPreempted) << cut.err;
  const auto resume = [&](const char* batch) {
    return ranks_.command(
        "cut", {std::string("--training.batch_size=") + batch, "--checkpoint.resume=force"});
  };
  // 3 steps of 4 samples are done.
  Program refused(resume("8"));
  EXPECT_EQ(refused.wait(), 4) << refused.err;
  EXPECT_THAT(refused.err, Names("training.global_batch_size: 4", 8));
  Program rest(resume("2"));
  ASSERT_EQ(rest.wait(), 0) << rest.err;
  EXPECT_EQ(ranks_.rows("cut").size(), 3 + 6 + 12 + 2U);
}

}  // namespace
}  // namespace precast::tools
