// Tests the pool with a program that can end in many ways (tests/support/fake_train).
#include "tools/experiments/trial/trial_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "framework/core/error.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_file.h"
#include "tools/experiments/trial/pool_display.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;
using test::eventually;
using test::Names;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class TrialPoolTest : public ::testing::Test {
 protected:
  TrialPoolTest() { ::setenv("FAKE_LOG", (folder_ / "fake.log").c_str(), 1); }

  void add(const std::string& id, const std::string& script) {
    trials_.push_back({id, "", {{"fake.script", script}}, folder_ / "runs"});
  }
  /// Reads the states from the disk, runs the pool, and reads the states again, as a new process
  /// would. @return the pool's exit code.
  ExitCode run(int slots = 2) {
    PoolOptions options{
        .program = test::source_dir() + "/tests/support/fake_train",
        .slots = make_slots({.devices = {"cpu"}, .slots_per_device = slots, .cores_per_slot = 1},
                            allowed_cores(), {}),
        .max_retries = 2,
        .retry_pause = std::chrono::milliseconds(1)};
    Journal journal(folder_ / "results.jsonl");
    states_ = fold_states(read_journals(folder_.path()));
    TrialPool pool(options, journal, states_, *watcher_);
    const ExitCode code = pool.run(trials_);
    auto read_again = fold_states(read_journals(folder_.path()));
    for (const auto& [id, state] : states_) EXPECT_EQ(read_again[id].status, state.status);
    return code;
  }
  std::vector<std::string> fake_log(const std::string& part = "") const {
    std::ifstream file(folder_ / "fake.log");
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) {
      if (line.find(part) != std::string::npos) lines.push_back(line);
    }
    return lines;
  }

  /// The id of the child process that the script `deaf` of a trial starts.
  [[nodiscard]] std::string child_of(const std::string& id) const {
    std::string number;
    std::ifstream(folder_ / "runs" / id / "child") >> number;
    return number;
  }
  void wait_for_children(const std::vector<std::string>& ids) const {
    for (const std::string& id : ids)
      EXPECT_TRUE(eventually([&] { return !child_of(id).empty(); })) << id;
  }
  /// Waits until the child process ends. A zombie counts as ended.
  [[nodiscard]] bool child_ends(const std::string& id) const {
    return eventually([&] {
      std::string stat;
      std::getline(std::ifstream("/proc/" + child_of(id) + "/stat"), stat);
      return stat.empty() || stat.find(") Z") != std::string::npos;
    });
  }

  test::TemporaryFolder folder_;
  std::vector<Trial> trials_;
  std::map<std::string, TrialState> states_;
  PoolWatcher silent_;
  PoolWatcher* watcher_ = &silent_;
};

TEST_F(TrialPoolTest, RunsEachTrialOnceAndKeepsItsFigures) {
  for (const char* id : {"a", "b", "c"}) add(id, "done");
  EXPECT_EQ(run(), ExitCode::done);
  EXPECT_EQ(fake_log(" start 1").size(), 3U);
  EXPECT_EQ(states_.at("b").status, TrialStatus::done);
  EXPECT_EQ(states_.at("b").figures.at("top_1"), 0.5);
  EXPECT_GT(states_.at("b").seconds, 0);
  EXPECT_EQ(run(), ExitCode::done);
  EXPECT_EQ(fake_log(" start ").size(), 3U);
}

TEST_F(TrialPoolTest, BindsEachTrialToItsCoresAndHidesTheGpus) {
  add("a", "done");
  EXPECT_EQ(run(1), ExitCode::done);
  EXPECT_THAT(fake_log(" start ")[0],
              HasSubstr("CUDA_VISIBLE_DEVICES= cores=" + std::to_string(allowed_cores()[0])));
}

TEST_F(TrialPoolTest, AWatcherMayDelayATrialAndAddArguments) {
  struct Prepares : PoolWatcher {
    std::optional<std::vector<std::string>> prepare(const NextStart& next) override {
      asked.push_back(next.trial.id);
      free_slots.push_back(next.free_slots);
      waiting.push_back(next.waiting.size());
      if (asked.size() < 3) return std::nullopt;
      if (next.trial.id == "b") throw ConfigError("no arguments");
      return std::vector<std::string>{"--fake.quality=0.75"};
    }
    std::vector<std::string> asked;
    std::vector<std::size_t> free_slots, waiting;
  } watcher;
  watcher_ = &watcher;
  add("a", "done");
  add("b", "done");
  EXPECT_EQ(run(), ExitCode::done);
  EXPECT_THAT(watcher.asked, ElementsAre("a", "b", "a", "b"));
  EXPECT_THAT(watcher.free_slots, ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(watcher.waiting, ElementsAre(1, 1, 1, 0));
  EXPECT_EQ(states_.at("a").figures.at("top_1"), 0.75);
  EXPECT_EQ(states_.at("b").figures.at("top_1"), 0.5) << "a failure of the watcher does not matter";
}

TEST_F(TrialPoolTest, RetriesOnlyFailuresThatMayBeTemporary) {
  add("io", "exit:5+done");
  add("killed", "kill:SEGV+kill:KILL+done");
  add("stubborn", "exit:14");
  add("broken", "exit:3");
  add("silent", "exit:0");
  add("diverged", "exit:12");
  add("preempted", "exit:85+exit:85+exit:85+exit:85+done");
  EXPECT_EQ(run(), ExitCode::failed);
  const auto status = [&](const char* id) { return states_.at(id).status; };
  EXPECT_EQ(status("io"), TrialStatus::done);
  EXPECT_EQ(status("killed"), TrialStatus::done);
  EXPECT_EQ(status("stubborn"), TrialStatus::failed);
  EXPECT_EQ(status("broken"), TrialStatus::failed);
  EXPECT_EQ(status("silent"), TrialStatus::failed);
  EXPECT_EQ(status("diverged"), TrialStatus::diverged);
  EXPECT_EQ(status("preempted"), TrialStatus::done);
  EXPECT_EQ(states_.at("stubborn").starts, 3);
  EXPECT_EQ(states_.at("broken").starts, 1);
  EXPECT_EQ(states_.at("diverged").starts, 1);
  EXPECT_EQ(states_.at("broken").exit_code, 3);
  // These results are final.
  EXPECT_EQ(run(), ExitCode::failed);
  EXPECT_EQ(states_.at("stubborn").starts, 3);
  EXPECT_THAT(test::read_text(folder_ / "runs/broken/output"), HasSubstr("as scripted: exit:3"));
}

TEST_F(TrialPoolTest, AnInvalidRecipeStopsThePoolAndIsRetriedByTheNextRun) {
  add("wrong", "exit:2+done");
  add("right", "epochs:20");
  add("never", "done");
  EXPECT_EQ(run(), ExitCode::usage);
  EXPECT_FALSE(states_.contains("never") && states_.at("never").starts > 0);
  EXPECT_EQ(run(), ExitCode::done);
  EXPECT_EQ(states_.at("wrong").status, TrialStatus::done);
  EXPECT_EQ(states_.at("right").status, TrialStatus::done);
}

TEST_F(TrialPoolTest, AMissingProgramStopsThePool) {
  add("a", "done");
  Journal journal(folder_ / "results.jsonl");
  TrialPool pool({.program = "/nowhere/precast", .slots = make_slots({}, {0}, {})}, journal,
                 states_, silent_);
  EXPECT_EQ(pool.run(trials_), ExitCode::usage);
  EXPECT_THAT(test::read_text(folder_ / "runs/a/output"),
              Names("/nowhere/precast", std::strerror(ENOENT)));
}

TEST_F(TrialPoolTest, EveryEndOfATrialThatCannotStartFollowsAStart) {
  std::ofstream(folder_ / "runs") << "not a folder";
  add("a", "done");
  EXPECT_EQ(run(), ExitCode::failed);
  EXPECT_EQ(states_.at("a").exit_code, static_cast<int>(ExitCode::io));
  EXPECT_EQ(states_.at("a").starts, 3);
  std::vector<std::string> events;
  for (const ordered_json& record : read_journals(folder_.path()))
    events.push_back(record.at("event").get<std::string>() + record.at("attempt").dump());
  EXPECT_THAT(events, ElementsAre("start1", "end1", "start2", "end2", "start3", "end3"));
}

TEST_F(TrialPoolTest, AWatcherThatCannotRecordAStartPreventsIt) {
  struct Refuses : PoolWatcher {
    void starting(const Trial& /*trial*/) override { throw IoError("cannot record"); }
  } watcher;
  watcher_ = &watcher;
  add("a", "done");
  EXPECT_THROW(run(), IoError);
  EXPECT_TRUE(fake_log().empty());
  EXPECT_TRUE(read_journals(folder_.path()).empty());
}

TEST_F(TrialPoolTest, ASignalLetsTrialsSaveAndTheNextRunContinues) {
  add("a", "hang+done");
  add("b", "hang+done");
  add("c", "done");
  std::jthread interrupter([this] {
    EXPECT_TRUE(eventually([this] { return fake_log(" start ").size() == 2; }));
    ::kill(::getpid(), SIGTERM);
  });
  EXPECT_EQ(run(), ExitCode::preempted);
  EXPECT_EQ(fake_log("saved").size(), 2U);
  EXPECT_EQ(fake_log("c start").size(), 0U);
  EXPECT_EQ(run(), ExitCode::done);
  EXPECT_EQ(states_.at("a").starts, 2);
  EXPECT_EQ(states_.at("a").failures, 0);
}

/// Lets another thread observe a pool.
class Observer final : public PoolWatcher {
 public:
  void show_message(const std::string& /*text*/) override { has_message = true; }
  void update(const std::list<RunningTrial>& running, std::size_t waiting) override {
    if (running.empty() && waiting > 0) waits = true;
  }
  std::atomic<bool> has_message = false;
  /// Whether the pool waits for a trial that another process runs.
  std::atomic<bool> waits = false;
};

TEST_F(TrialPoolTest, ASecondInterruptKillsAllRemainingProcesses) {
  for (const char* id : {"a", "b"}) add(id, "deaf+done");
  Observer observer;
  watcher_ = &observer;
  std::jthread interrupter([&] {
    wait_for_children({"a", "b"});
    ::kill(::getpid(), SIGINT);
    EXPECT_TRUE(eventually([&] { return observer.has_message.load(); }))
        << "the first interrupt is reported";
    ::kill(::getpid(), SIGINT);
  });
  EXPECT_EQ(run(), ExitCode::preempted);
  for (const char* id : {"a", "b"}) EXPECT_TRUE(child_ends(id));
  EXPECT_EQ(run(), ExitCode::done);
  EXPECT_EQ(states_.at("a").starts, 2);
  EXPECT_EQ(states_.at("a").failures, 0) << "a trial that the pool kills has not failed";
}

TEST_F(TrialPoolTest, AnUnwritableJournalStopsThePoolAndAnInterruptThenKills) {
  add("a", "deaf+done");
  add("b", "epochs:4");
  // The journal is longer than all files of the trials, so that the limit below affects only it.
  std::ofstream(folder_ / "results.jsonl") << "{\"event\": \"" << std::string(5000, 'x') << "\"}\n";
  const auto old_limit_handler = std::signal(SIGXFSZ, SIG_IGN);
  // Interrupts may still arrive after the pool has ended.
  const auto old_handler = std::signal(SIGINT, [](int) {});
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  std::jthread interrupter([&](const std::stop_token& stop) {
    wait_for_children({"a"});
    const rlimit limit{std::filesystem::file_size(folder_ / "results.jsonl"), before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    EXPECT_TRUE(eventually([this] { return !fake_log("b done").empty(); }));
    // The first interrupt that the pool receives after its error kills the remaining processes.
    EXPECT_TRUE(eventually([&] {
      ::kill(::getpid(), SIGINT);
      return stop.stop_requested();
    }));
  });
  EXPECT_THROW(run(), IoError);
  interrupter.request_stop();
  interrupter.join();
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_limit_handler);
  std::signal(SIGINT, old_handler);
  EXPECT_TRUE(child_ends("a"));
  EXPECT_EQ(run(), ExitCode::done);
  EXPECT_EQ(states_.at("a").starts, 2);
  EXPECT_EQ(fake_log("b done").size(), 1U);
}

TEST_F(TrialPoolTest, DistinguishesInvalidRecipesFromInterruptions) {
  add("wrong", "exit:2");
  add("right", "epochs:1000");
  PoolDisplay display(trials_, states_, 2, "top_1");
  watcher_ = &display;
  testing::internal::CaptureStderr();
  EXPECT_EQ(run(), ExitCode::usage);
  const std::string said = testing::internal::GetCapturedStderr();
  // A failure is reported with its exit code and the location of its output.
  EXPECT_THAT(said, Names("wrong", "exit code 2", folder_ / "runs/wrong/output"));
  EXPECT_THAT(said, Not(HasSubstr((folder_ / "runs/right").string())));
  EXPECT_EQ(test::occurrences(said, "] right: "), 1) << said;
}

TEST_F(TrialPoolTest, TakesOverARunThatEndedUnseen) {
  add("a", "done");
  EXPECT_EQ(run(), ExitCode::done);
  // Imitates a pool that was killed while it recorded the end of the training run.
  std::ifstream file(folder_ / "results.jsonl");
  std::string start, end;
  std::getline(file, start);
  std::getline(file, end);
  std::ofstream(folder_ / "results.jsonl") << start << "\n" << end.substr(0, 50);
  EXPECT_EQ(run(), ExitCode::done);
  EXPECT_EQ(fake_log(" start ").size(), 1U);
  EXPECT_EQ(states_.at("a").figures.at("top_1"), 0.5);
  EXPECT_EQ(read_journals(folder_.path()).size(), 2U);
}

TEST_F(TrialPoolTest, LeavesATrialToTheProcessThatRunsItAndTakesItsResult) {
  add("a", "done");
  std::filesystem::create_directories(trials_[0].run_folder());
  auto lock = FileLock::try_lock(trials_[0].run_folder() / "lock");
  ASSERT_TRUE(lock.has_value());
  Observer observer;
  watcher_ = &observer;
  std::jthread other([&] {
    EXPECT_TRUE(eventually([&] { return observer.waits.load(); }));
    std::ofstream(trials_[0].run_folder() / "summary.json") << "{\"top_1\": 0.9}";
    lock.reset();
  });
  EXPECT_EQ(run(), ExitCode::done);
  EXPECT_TRUE(fake_log().empty());
  EXPECT_EQ(states_.at("a").figures.at("top_1"), 0.9);
}

class StopOnce final : public PoolWatcher {
 public:
  bool should_stop(const Trial& trial) override { return trial.id == "a" && resumed_ == 0; }
  std::optional<std::string> trial_to_resume() override {
    if (!stopped_ || resumed_++ > 0) return std::nullopt;
    return "a";
  }
  void ended(const Trial& trial, const ordered_json& record) override {
    if (trial.id == "a" && record.at("status") == "stopped") stopped_ = true;
  }

 private:
  bool stopped_ = false;
  int resumed_ = 0;
};

TEST_F(TrialPoolTest, ATrialThatIsStoppedEarlyCanGoOnLater) {
  add("a", "hang+done");
  add("b", "epochs:10");
  StopOnce stop_once;
  watcher_ = &stop_once;
  EXPECT_EQ(run(), ExitCode::done);
  EXPECT_EQ(states_.at("a").status, TrialStatus::done);
  EXPECT_EQ(states_.at("a").starts, 2);
  EXPECT_EQ(states_.at("b").starts, 1);
}

TEST(JournalTest, TruncatesAnIncompleteLineAndReadsAllJournals) {
  test::TemporaryFolder folder;
  std::ofstream(folder / "results.jsonl") << "{\"event\": \"start\", \"trial\": \"a\"}\n{\"eve";
  Journal(folder / "results.jsonl").append({{"event", "end"}, {"trial", "a"}, {"status", "done"}});
  std::ofstream(folder / "results-3.jsonl")
      << "{\"event\": \"start\", \"trial\": \"b\"}\nnonsense\n[1]\n{\"event\": \"e";
  testing::internal::CaptureStderr();
  const auto states = fold_states(read_journals(folder.path()));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Names(folder / "results-3.jsonl", 2));
  EXPECT_EQ(states.at("a").status, TrialStatus::done);
  EXPECT_EQ(states.at("b").status, TrialStatus::waiting);
  EXPECT_EQ(states.at("b").starts, 1);
}

TEST(PoolHeadlineTest, CountsOnlyTheTrialsOfThePool) {
  std::vector<Trial> trials(3);
  for (std::size_t i = 0; i < trials.size(); ++i) trials[i].id = std::string(1, "abc"[i]);
  std::map<std::string, TrialState> states;
  for (const auto& [id, seconds] : {std::pair("a", 10), std::pair("of_an_earlier_sweep", 3600)}) {
    states[id].status = TrialStatus::done;
    states[id].seconds = seconds;
  }
  EXPECT_THAT(pool_headline(trials, states, {.slots = 1, .running = 0, .waiting = 2}),
              Names("3 trials", "1 done", "2 waiting", "20.0 s"));
}

TEST(FitTerminalTest, CutsLinesAndCountsThoseThatWouldScroll) {
  const std::vector<std::string> lines = {"head", "one", "two", "three"};
  EXPECT_EQ(fit_terminal(lines, 5, 80), lines);
  EXPECT_THAT(fit_terminal(lines, 4, 80), ElementsAre("head", "one", Names(2)));
  EXPECT_THAT(fit_terminal(lines, 1, 80), ElementsAre("head", Names(3)));
  EXPECT_THAT(fit_terminal(lines, 5, 4), ElementsAre("hea", "one", "two", "thr"));
}

}  // namespace
}  // namespace precast::tools
