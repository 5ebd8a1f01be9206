// `precast grid` as a user starts it, with a program that only pretends to train
// (tests/support/fake_train).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "framework/core/file_lock.h"
#include "framework/process/child_process.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_file.h"
#include "tests/tools/report/sound_page.h"

namespace precast::tools {
namespace {

using nlohmann::json;
using test::eventually;
using test::Names;
using testing::HasSubstr;
using testing::Not;

class GridTest : public ::testing::Test {
 protected:
  GridTest() {
    ::setenv("FAKE_LOG", (folder_ / "fake.log").c_str(), 1);
    std::ofstream(folder_ / "r.yaml") << "training: {epochs: 1}\n";
  }
  /// @param more further keys of the section `grid`.
  void write_sweep(const std::string& text, const std::string& more = "") {
    std::ofstream(folder_ / "s.yaml")
        << "recipe: " << (folder_ / "r.yaml").string() << "\nfolder: " << (folder_ / "g").string()
        << "\n"
        << text << "\ngrid: {devices: cpu, slots_per_device: 2, cores_per_slot: 1, retry_pause_s: 0"
        << more << "}\n";
  }
  /// @param devices the key `grid.devices`.
  void write_sweep_on(const std::string& devices, const std::string& text) {
    std::ofstream(folder_ / "s.yaml")
        << "recipe: " << (folder_ / "r.yaml").string() << "\nfolder: " << (folder_ / "g").string()
        << "\n"
        << text << "\ngrid: {devices: " << devices << ", retry_pause_s: 0}\n";
  }
  std::vector<std::string> command(const std::vector<std::string>& options = {}) const {
    std::vector<std::string> all = {test::bin_dir() + "/precast", "grid", folder_ / "s.yaml",
                                    "--program", test::source_dir() + "/tests/support/fake_train"};
    all.insert(all.end(), options.begin(), options.end());
    return all;
  }
  ChildResult grid(const std::vector<std::string>& options = {}) const {
    return run_child(command(options), std::chrono::minutes(1));
  }
  /// A grid whose dry runs print `errors` and end with the exit code `code`.
  ChildResult grid_whose_check_fails(const std::string& errors, int code,
                                     const std::vector<std::string>& options = {}) const {
    std::vector<std::string> words = command(options);
    std::string& program = *(std::ranges::find(words, "--program") + 1);
    std::ofstream(folder_ / "errors") << errors;
    std::ofstream(folder_ / "failing")
        << "#!/bin/bash\ncat '" << (folder_ / "errors").string() << "' >&2\nexit " << code << "\n";
    std::filesystem::permissions(folder_ / "failing", std::filesystem::perms::owner_all);
    program = folder_ / "failing";
    return run_child(words, std::chrono::minutes(1));
  }
  /// @param gpus the value of CUDA_VISIBLE_DEVICES.
  std::vector<std::string> command_with_gpus(const std::string& gpus,
                                             const std::vector<std::string>& options = {}) const {
    std::vector<std::string> all = {"/usr/bin/env", "CUDA_VISIBLE_DEVICES=" + gpus};
    for (const std::string& word : command(options)) all.push_back(word);
    return all;
  }
  ChildResult grid_with_gpus(const std::string& gpus,
                             const std::vector<std::string>& options = {}) const {
    return run_child(command_with_gpus(gpus, options), std::chrono::minutes(1));
  }
  /// Starts the grid while the lock of the trial with this index is taken. When `starts` other
  /// trials have started, calls `change` and releases the lock. @return the exit code of the grid.
  int change_before_start(std::size_t index, std::size_t starts,
                          const std::function<void()>& change, std::string& errors,
                          const std::vector<std::string>& options = {}) const {
    const json trials = json::parse(grid({"--dry-run", "--json"}).output);
    const std::string id = trials.at(index).at("trial");
    const std::filesystem::path run_folder = folder_ / ("g/runs/" + id);
    std::filesystem::create_directories(run_folder);
    auto lock = FileLock::try_lock(run_folder / "lock");
    EXPECT_TRUE(lock.has_value());
    test::Program run(command(options));
    EXPECT_TRUE(eventually([&] {
      return fake_log(" start ").size() == starts &&
             std::filesystem::exists(folder_ / "g/sweep.json");
    }));
    change();
    lock.reset();
    const int code = run.wait();
    errors = run.err;
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
  std::string text_of(const std::string& path) const { return test::read_text(folder_ / path); }
  json results() const { return json::parse(grid({"--status", "--json"}).output); }
  void wait_for_a_start() const {
    EXPECT_TRUE(eventually([this] { return !fake_log(" start").empty(); }));
  }
  /// The number of epochs that all trials together have logged.
  [[nodiscard]] std::ptrdiff_t epochs_logged() const {
    std::ptrdiff_t epochs = 0;
    std::error_code none;
    for (const auto& run : std::filesystem::directory_iterator(folder_ / "g/runs", none)) {
      std::ifstream log(run.path() / "log");
      epochs += std::count(std::istreambuf_iterator<char>(log), {}, '\n');
    }
    return epochs;
  }
  /// Starts the grid and kills it when its trials have logged this number of epochs, unless it has
  /// ended before.
  void kill_after(std::ptrdiff_t epochs) const {
    test::Program run(command());
    EXPECT_TRUE(eventually([&] { return epochs_logged() >= epochs || !run.running(); }));
    ::kill(run.id(), SIGKILL);
    EXPECT_THAT(run.wait(), testing::AnyOf(0, 128 + SIGKILL)) << run.err;
  }

  test::TemporaryFolder folder_;
};

TEST_F(GridTest, TrainsEveryCombinationAndRanksThemOverSeeds) {
  write_sweep("axes: {fake.quality: [0.2, 0.8, 0.5]}\nseeds: 2");
  const ChildResult run = grid();
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(run.output,
            "rank   fake.quality   top_1              trials\n"
            "1      0.8            0.8000 +- 0.0000   2 done\n"
            "2      0.5            0.5000 +- 0.0000   2 done\n"
            "3      0.2            0.2000 +- 0.0000   2 done\n");
  EXPECT_THAT(run.errors, Names("6/6"));
  EXPECT_THAT(run.errors, testing::EndsWith(" " + (folder_ / "g").string() + "\n"));
  EXPECT_THAT(run.errors, Names("grid.html"));
  const json ranking = results().at("ranking");
  EXPECT_EQ(ranking[0].at("settings").at("fake.quality"), "0.8");
  EXPECT_EQ(ranking[0].at("count"), 2);
}

TEST_F(GridTest, AFinishedTrialIsShownWithItsRoundedMetric) {
  write_sweep("axes: {fake.quality: [0.123456789]}");
  const ChildResult run = grid();
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, Names("top_1 0.1235"));
}

TEST_F(GridTest, TrialsRunWithoutALoaderThatCannotStart) {
  write_sweep("axes: {fake.quality: [0.2, 0.8, 0.3, 0.4]}\nset: {training.seed: 7}",
              ", share_loader: true");
  const ChildResult run = grid();
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(results().at("counts").at("done"), 4);
  // One attempt to start a loader, for two trials.
  EXPECT_EQ(fake_log("serve").size(), 1U);
  EXPECT_EQ(fake_log("--training.seed=7").size(), 1U);
  EXPECT_EQ(fake_log("--consumers 2").size(), 1U);
  EXPECT_EQ(results().at("shared_loaders").at("samples_decoded"), 0);
  EXPECT_THAT(run.errors, Names("loader", 5));
}

TEST_F(GridTest, ThePageShowsResultsAndReasonsOfFailures) {
  write_sweep(
      "axes: {fake.quality: [0.25, 0.75], fake.script: [done, 'epochs:3', 'exit:1', 'exit:12', "
      "'kill:KILL']}\nset: {training.epochs: 3}");
  EXPECT_EQ(grid().exit_code, 1);
  const std::string page = text_of("g/grid.html");
  test::expect_valid_page(page);
  for (const char* part :
       {"<b>0.7500</b>", "<small>fake.quality 0.75, fake.script done</small>", "<b>4 of 10</b>"})
    EXPECT_THAT(page, HasSubstr(part));
  EXPECT_THAT(page, Names("exit code 1", "as scripted: exit:1", "exit code 12",
                          "as scripted: exit:12", "SIGKILL"));
  EXPECT_EQ(test::occurrences(page, "<svg"), 3) << "a heat map, all trials, and curves";
  const json all = results();
  for (const json& trial : all.at("trials")) {
    const std::string id = trial.at("trial");
    EXPECT_THAT(page, HasSubstr("href=\"runs/" + id + "/\""));
    EXPECT_TRUE(std::filesystem::is_directory(folder_ / ("g/runs/" + id)));
  }
}

TEST_F(GridTest, WarnsOnceAndOnThePageIfALossThatIsNotComparableRanks) {
  const std::string key = "training.label_smoothing";
  write_sweep("axes: {" + key + ": [0, 0.1]}\nmetric: val_loss");
  const ChildResult run = grid();
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(test::occurrences(run.errors, key + ":"), 1) << run.errors;
  EXPECT_THAT(run.errors, Names(folder_ / "s.yaml", key, "val_loss", "top_1"));
  EXPECT_THAT(text_of("g/grid.html"), Names("class=\"notice\"", key + ":", "top_1"));
  EXPECT_THAT(grid({"--trial", "0"}).errors, Not(HasSubstr(key + ":")));
}

TEST_F(GridTest, ThePageIsThereWhileTrialsRunAndAfterStatus) {
  write_sweep("axes: {fake.script: [done, hang]}");
  test::Program run(command());
  const std::filesystem::path page = folder_ / "g/grid.html";
  EXPECT_TRUE(eventually([&] { return std::filesystem::exists(page); }));
  EXPECT_THAT(text_of("g/grid.html"), HasSubstr("class=\"notice\""));
  std::filesystem::remove(page);
  EXPECT_EQ(results().at("counts").at("running"), 1);
  EXPECT_TRUE(std::filesystem::exists(page));
  ::kill(run.id(), SIGKILL);
  EXPECT_EQ(run.wait(), 137);
  EXPECT_TRUE(eventually([this] { return !results().at("counts").contains("running"); }))
      << "a trial counts as running until its process has ended";
  EXPECT_EQ(results().at("counts").at("waiting"), 1);
}

TEST_F(GridTest, KilledAtAnyMomentItLosesNothingAndRunsNothingTwice) {
  write_sweep(
      "axes: {fake.quality: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}\nset: {fake.script: 'epochs:15'}");
  for (const int epochs : {0, 5, 20, 40, 60}) kill_after(epochs);
  const ChildResult last = grid({"--json"});
  ASSERT_EQ(last.exit_code, 0) << last.errors;
  const json all = json::parse(last.output);
  EXPECT_EQ(all.at("counts").at("done"), 6);
  for (const json& trial : all.at("trials")) {
    const std::string id = trial.at("trial");
    // fake_train writes this line after the summary. A trial that was killed in between is done,
    // but has no such line.
    EXPECT_LE(fake_log(id + " done").size(), 1U) << id;
    // No epoch is missing. An epoch may be logged twice if it was interrupted by a kill.
    std::ifstream log(folder_ / ("g/runs/" + id + "/log"));
    std::set<int> epochs;
    for (std::string line; std::getline(log, line);)
      epochs.insert(int{json::parse(line).at("epoch")});
    EXPECT_EQ(epochs.size(), 15U);
    EXPECT_EQ(trial.at("value"),
              std::stod(trial.at("settings").at("fake.quality").get<std::string>()));
  }
}

TEST_F(GridTest, TrialsDieWithAGridThatIsKilled) {
  write_sweep("axes: {fake.script: [hang]}");
  test::Program run(command());
  wait_for_a_start();
  ::kill(run.id(), SIGKILL);
  EXPECT_EQ(run.wait(), 137);
  // The trial's lock is released when its last process ends.
  const std::string id = fake_log()[0].substr(0, fake_log()[0].find(' '));
  const std::string lock = folder_ / ("g/runs/" + id + "/lock");
  EXPECT_EQ(
      run_child({"/usr/bin/flock", "-w", "60", lock, "true"}, std::chrono::minutes(2)).exit_code,
      0);
}

TEST_F(GridTest, ASecondGridInTheSameFolderIsRefused) {
  write_sweep("axes: {fake.script: [hang+done]}");
  test::Program first(command());
  wait_for_a_start();
  const ChildResult second = grid();
  EXPECT_EQ(second.exit_code, 5);
  EXPECT_EQ(second.output, "");
  EXPECT_THAT(second.errors, Names(folder_ / "g"));
  EXPECT_EQ(grid({"--trial", "0"}).exit_code, 5);
  EXPECT_EQ(grid({"--status"}).exit_code, 0);
  ::kill(first.id(), SIGINT);
  EXPECT_EQ(first.wait(), 85) << first.err;
  EXPECT_EQ(fake_log("saved").size(), 1U);
  EXPECT_EQ(grid().exit_code, 0);
}

TEST_F(GridTest, AWrongValueIsRefusedAtItsPlaceBeforeAnythingRuns) {
  write_sweep("axes: {fake.quality: [0.1, 0.2]}\nset:\n  fake.refused: 1");
  for (const std::vector<std::string>& options : {std::vector<std::string>{}, {"--dry-run"}}) {
    const ChildResult run = grid(options);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.errors, Names((folder_ / "s.yaml").string() + ":5:17", "fake.refused"));
    EXPECT_EQ(test::occurrences(run.errors, "fake.refused"), 1) << run.errors;
  }
  EXPECT_TRUE(fake_log().empty());
}

TEST_F(GridTest, UnknownKeysOfTheRecipeAreRefusedAtTheirPlaces) {
  write_sweep("axes:\n  training.wd: [1, 2]\nset: {lr.lrr: 1}");
  const ChildResult run = grid_whose_check_fails(
      "error: command line: --training.wd: unknown key\n"
      "command line: --lr.lrr: unknown key\ncommand line: --no.key: unknown key\n",
      2, {"--no.key=1"});
  EXPECT_EQ(run.exit_code, 2);
  const std::string sweep = folder_ / "s.yaml";
  EXPECT_THAT(run.errors, Names(sweep + ":4:17: training.wd", sweep + ":5:15: lr.lrr",
                                "command line: --no.key"));
  EXPECT_EQ(test::occurrences(run.errors, "training.wd"), 1) << "once, not once per value";
}

TEST_F(GridTest, AnExitCodeThatAllChecksHaveIsThatOfTheGrid) {
  write_sweep("axes: {fake.quality: [0.1, 0.2]}");
  for (const std::vector<std::string>& options : {std::vector<std::string>{}, {"--dry-run"}}) {
    for (const int code : {3, 4, 5}) {
      const ChildResult run =
          grid_whose_check_fails("error: d.beton: as scripted\n", code, options);
      EXPECT_EQ(run.exit_code, code);
      EXPECT_EQ(test::occurrences(run.errors, "d.beton"), 1) << run.errors;
    }
    EXPECT_EQ(grid_whose_check_fails("error: as scripted\n", 1, options).exit_code, 2);
  }
}

TEST_F(GridTest, AMissingRecipeIsAnIoErrorUnlessThereAreOtherMistakes) {
  std::filesystem::remove(folder_ / "r.yaml");
  write_sweep("axes: {fake.quality: [0.1, 0.2]}");
  const ChildResult missing = grid();
  EXPECT_EQ(missing.exit_code, 5);
  EXPECT_THAT(missing.errors, Names((folder_ / "s.yaml").string() + ":1:9", folder_ / "r.yaml"));
  write_sweep("axes: {fake.quality: [0.1, 0.2]}\nno_key: 1");
  const ChildResult both = grid();
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.errors, Names(folder_ / "r.yaml", "no_key"));
}

TEST_F(GridTest, AKeyThatNoTrialReadsIsRefusedAtItsPlaceBeforeAnythingRuns) {
  write_sweep("axes: {fake.script: ['epochs:1', 'epochs:2']}\nset:\n  fake.option: 1");
  for (const std::vector<std::string>& options : {std::vector<std::string>{}, {"--dry-run"}}) {
    const ChildResult run = grid(options);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.errors, Names((folder_ / "s.yaml").string() + ":5:16", "fake.option"));
    EXPECT_EQ(test::occurrences(run.errors, "fake.option"), 1) << run.errors;
  }
  EXPECT_TRUE(fake_log().empty());
}

TEST_F(GridTest, AKeyThatSomeTrialsReadIsAccepted) {
  write_sweep("axes: {fake.script: [done]}\nset: {fake.option: 1}");
  EXPECT_EQ(grid().exit_code, 0);
  // Only the trial that has run before reads the key.
  write_sweep("axes: {fake.script: ['epochs:1', done]}\nset: {fake.option: 1}");
  const ChildResult run = grid();
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(fake_log(" start ").size(), 2U);
}

TEST_F(GridTest, AKeyOfPublishedRecipesMayHaveNoEffectOnlyInTheRecipe) {
  write_sweep("axes: {fake.quality: [0.1, 0.2]}");
  EXPECT_EQ(grid({"--dry-run"}).exit_code, 0) << "fake_train finds fake.published in the recipe";
  EXPECT_EQ(grid({"--dry-run", "--fake.published=1"}).exit_code, 2);
  write_sweep("axes: {fake.quality: [0.1, 0.2]}\nset:\n  fake.published: 1");
  EXPECT_EQ(grid({"--dry-run"}).exit_code, 2);
  // Two trials cover all values of the axes. The two other combinations of fake.quality and
  // fake.script might read the key, so they are checked, too.
  write_sweep(
      "axes: {fake.quality: [0.1, 0.2], fake.script: [done, 'epochs:1'],\n"
      "  fake.published: [1, 2]}");
  for (const std::vector<std::string>& options : {std::vector<std::string>{"--dry-run"}, {}}) {
    const ChildResult run = grid(options);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.errors, Names((folder_ / "s.yaml").string() + ":4:20", "fake.published"));
  }
  EXPECT_TRUE(fake_log().empty());
}

TEST_F(GridTest, AKeyThatNoCheckedTrialReadsIsAWarningIfTooManyTrialsAreLeft) {
  write_sweep(
      "axes: {fake.quality: {uniform: {low: 0, high: 1, n: 40}},\n"
      "  fake.script: ['epochs:1', 'epochs:2']}\nset: {fake.option: 1}");
  const ChildResult run = grid({"--dry-run"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, Names((folder_ / "s.yaml").string() + ":5:20", "fake.option"));
}

TEST_F(GridTest, ASignalDuringTheCheckStopsItAndLeavesNoProcess) {
  write_sweep("axes: {fake.quality: [0.1, 0.2, 0.3]}\nset: {fake.check_hangs: 1}");
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) {
    std::filesystem::remove(folder_ / "fake.log");
    test::Program run(command());
    EXPECT_TRUE(eventually([this] { return fake_log("check ").size() == 2; }));
    ::kill(run.id(), signal);
    EXPECT_EQ(run.wait(), 85) << run.err;
    for (const std::string& line : fake_log()) {
      ASSERT_TRUE(line.starts_with("check ")) << line;
      EXPECT_EQ(::kill(std::stoi(line.substr(6)), 0), -1) << line;
      EXPECT_EQ(errno, ESRCH);
    }
  }
}

TEST_F(GridTest, TrialsThatNeedMoreGpusThanASlotHasAreRefusedBeforeAnythingRuns) {
  const auto grid_on = [&](const std::string& devices,
                           const std::vector<std::string>& options = {}) {
    write_sweep_on(devices, "axes: {fake.gpus: [1]}");
    return grid_with_gpus("5", options);
  };
  const ChildResult run = grid_on("cpu");
  EXPECT_EQ(run.exit_code, 6);
  EXPECT_THAT(run.errors, Names((folder_ / "s.yaml").string() + ":3:20", "fake.gpus", 1, 0));
  EXPECT_TRUE(fake_log().empty());
  const ChildResult on_gpu = grid_on("[0]");
  EXPECT_EQ(on_gpu.exit_code, 0) << on_gpu.errors;
  EXPECT_THAT(fake_log(" start ")[0], HasSubstr("CUDA_VISIBLE_DEVICES=5 "));
  // Trials that were checked with a GPU are checked again without one.
  EXPECT_EQ(grid_on("cpu").exit_code, 6);
  EXPECT_EQ(grid_on("[0]").exit_code, 0);
  EXPECT_EQ(fake_log(" start ").size(), 1U);
  // The trials of a dry run may run on another host.
  const ChildResult dry = grid_on("cpu", {"--dry-run"});
  EXPECT_EQ(dry.exit_code, 0) << dry.errors;
  EXPECT_THAT(dry.errors, Names((folder_ / "s.yaml").string() + ":3:20", "fake.gpus", 1, 0));
}

TEST_F(GridTest, DevicesAreIndicesOfTheVisibleGpusAndOthersAreRefusedBeforeAnythingRuns) {
  write_sweep_on("[0, 7]", "axes: {fake.quality: [0.1, 0.2]}");
  const ChildResult run = grid_with_gpus("2,3");
  EXPECT_EQ(run.exit_code, 6);
  EXPECT_THAT(run.errors, Names((folder_ / "s.yaml").string() + ":4:17", "grid.devices", 2, 7));
  EXPECT_TRUE(fake_log().empty());
  EXPECT_EQ(grid_with_gpus("").exit_code, 6);
  // The trials of a dry run may run on another host.
  const ChildResult dry = grid_with_gpus("2,3", {"--dry-run"});
  EXPECT_EQ(dry.exit_code, 0) << dry.errors;
  EXPECT_THAT(dry.errors, Names("warning", (folder_ / "s.yaml").string() + ":4:17", 7));
  // Trials that train on the CPU need no GPU; the slots share the cores.
  EXPECT_EQ(grid_with_gpus("2,3", {"--training.device=cpu"}).exit_code, 0);
  EXPECT_EQ(fake_log(" start ").size(), 2U);
  std::filesystem::remove(folder_ / "fake.log");
  write_sweep_on("[0, 1]", "axes: {fake.script: [hang, done]}");
  test::Program both(command_with_gpus("2,3"));
  EXPECT_TRUE(eventually([&] { return fake_log(" start ").size() == 2; }));
  EXPECT_EQ(fake_log("CUDA_VISIBLE_DEVICES=2 ").size(), 1U);
  EXPECT_EQ(fake_log("CUDA_VISIBLE_DEVICES=3 ").size(), 1U);
  ::kill(both.id(), SIGTERM);
  EXPECT_EQ(both.wait(), 85) << both.err;
}

TEST_F(GridTest, PlansOfDryRunsMayBeLongButNotMissing) {
  // A plan that is longer than what run_child() keeps by default.
  write_sweep(
      "axes: {fake.script: ['epochs:1']}\nset:\n  fake.plan_bytes: 2000000\n"
      "  fake.option: 1");
  const ChildResult unread = grid();
  EXPECT_EQ(unread.exit_code, 2);
  EXPECT_THAT(unread.errors, Names((folder_ / "s.yaml").string() + ":6:16", "fake.option"));
  write_sweep("axes: {fake.script: ['epochs:1']}\nset: {fake.plan_bytes: 0}");
  const ChildResult missing = grid();
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.errors, Names("train --dry-run --json", 0));
  EXPECT_TRUE(fake_log().empty());
}

TEST_F(GridTest, AGridOnTheCpuRefusesTrialsThatRequestAGpuButListsThem) {
  write_sweep("axes: {fake.quality: [0.1, 0.2]}\nset: {training.device: cuda}");
  const ChildResult run = grid();
  EXPECT_EQ(run.exit_code, 6);
  EXPECT_EQ(test::occurrences(run.errors, "training.device"), 1) << run.errors;
  EXPECT_TRUE(fake_log().empty());
  EXPECT_EQ(grid({"--dry-run"}).exit_code, 0) << "the trials may run on another host";
}

TEST_F(GridTest, RanksByTheMetricThatTheFixedKeysChoose) {
  write_sweep("axes: {fake.quality: [0.2, 0.8]}\nset: {validation.best_metric: val_loss}");
  const ChildResult run = grid({"--json"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(run.errors.find("warning:"), std::string::npos) << run.errors;
  const json all = json::parse(run.output);
  EXPECT_EQ(all.at("metric"), "val_loss");
  EXPECT_EQ(all.at("ranking")[0].at("mean"), 1.5);
}

TEST_F(GridTest, AMetricThatNoTrialHasIsReportedWithTheFiguresThatThereAre) {
  write_sweep("axes: {fake.quality: [0.2, 0.8]}\nset: {training.loss: mse}");
  for (const std::vector<std::string>& options : {std::vector<std::string>{}, {"--status"}}) {
    const ChildResult run = grid(options);
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_THAT(run.errors,
                Names(folder_ / "s.yaml", "metric", "r2", "top_1", "val_loss", "train_minutes"));
    EXPECT_EQ(run.errors.find("run_folder"), std::string::npos) << run.errors;
  }
}

TEST_F(GridTest, ListsTrialsWithoutRunningThem) {
  write_sweep("axes: {fake.quality: [0.1, 0.2]}");
  const ChildResult run = grid({"--dry-run"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.output, HasSubstr("   1  quality0.2-"));
  EXPECT_THAT(run.output, Names(2, "cpu.0", "cpu.1"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "g"));
}

TEST_F(GridTest, AChangedRecipeIsAnotherGrid) {
  write_sweep("axes: {fake.quality: [0.1]}");
  EXPECT_EQ(grid().exit_code, 0);
  std::ofstream(folder_ / "r.yaml") << "training: {epochs: 2}\n";
  const ChildResult run = grid();
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.errors, Names(folder_ / "s.yaml", folder_ / "g", folder_ / "r.yaml"));
  const ChildResult status = grid({"--status"});
  EXPECT_EQ(status.exit_code, 0);
  EXPECT_THAT(status.errors,
              Names("warning", folder_ / "s.yaml", folder_ / "g", folder_ / "r.yaml"));
  EXPECT_THAT(status.output, HasSubstr("0.1000"));
}

TEST_F(GridTest, ARecipeThatChangesWhileTrialsRunEndsTheGridBeforeTheNextStart) {
  write_sweep("axes: {fake.script: [hang, done]}");
  std::string errors;
  const auto change = [this] { std::ofstream(folder_ / "r.yaml") << "training: {epochs: 99}\n"; };
  EXPECT_EQ(change_before_start(1, 1, change, errors), 2) << errors;
  EXPECT_THAT(errors, Names(folder_ / "s.yaml", folder_ / "g", folder_ / "r.yaml"));
  EXPECT_EQ(fake_log(" start ").size(), 1U);
  EXPECT_EQ(fake_log("saved").size(), 1U);
}

TEST_F(GridTest, ADatasetThatChangesWhileTrialsRunEndsTheGridBeforeTheNextStart) {
  std::ofstream(folder_ / "train") << "xxx";
  write_sweep("axes: {fake.script: [hang, done]}\nset: {data.train_dataset: " +
              (folder_ / "train").string() + "}");
  std::string errors;
  const auto change = [this] { std::ofstream(folder_ / "train") << "xxxxxxx"; };
  EXPECT_EQ(change_before_start(1, 1, change, errors), 2) << errors;
  EXPECT_THAT(errors, Names(folder_ / "train", 3, 7));
  EXPECT_EQ(fake_log(" start ").size(), 1U);
  EXPECT_EQ(fake_log("saved").size(), 1U);
}

TEST_F(GridTest, AnArrayTaskDoesNotStartWithARecipeThatChangedWhileItWaited) {
  write_sweep("axes: {fake.quality: [0.1]}");
  std::string errors;
  const auto change = [this] { std::ofstream(folder_ / "r.yaml") << "training: {epochs: 99}\n"; };
  EXPECT_EQ(change_before_start(0, 0, change, errors, {"--trial", "0"}), 2) << errors;
  EXPECT_THAT(errors, Names(folder_ / "r.yaml"));
  EXPECT_TRUE(fake_log().empty());
}

TEST_F(GridTest, ChoicesThatAreDrawnAgainAreTrainedOnce) {
  write_sweep("axes: {fake.quality: {random: {choices: [0.1, 0.2, 0.3], samples: 5}}}");
  const ChildResult run = grid({"--dry-run"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, Names(folder_ / "s.yaml", "axes", 5, 3));
  write_sweep("axes: {fake.quality: {random: {choices: [0.1, 0.2, 0.3], samples: 3}}}");
  EXPECT_EQ(grid({"--dry-run"}).errors.find("warning: " + (folder_ / "s.yaml").string()),
            std::string::npos);
}

TEST_F(GridTest, ADatasetThatIsReplacedIsAnotherGrid) {
  const std::string first = folder_ / "first", second = folder_ / "second";
  for (const std::string& file : {first, second}) std::ofstream(file) << "xxx";
  std::ofstream(folder_ / "r.yaml") << "data: {val_dataset: " << first << "}\n";
  write_sweep("axes: {data.train_dataset: [" + first + ", " + second + "]}");
  ASSERT_EQ(grid().exit_code, 0);
  EXPECT_EQ(grid().exit_code, 0);
  for (const std::string& file : {first, second}) {
    std::ofstream(file) << "xxxxxxx";
    for (const std::vector<std::string>& options :
         {std::vector<std::string>{}, {"--dry-run"}, {"--trial", "0"}}) {
      const ChildResult run = grid(options);
      EXPECT_EQ(run.exit_code, 2);
      EXPECT_THAT(run.errors, Names(folder_ / "s.yaml", folder_ / "g", file, 3, 7));
    }
    std::ofstream(file) << "xxx";
  }
  EXPECT_EQ(fake_log(" start ").size(), 2U);
}

TEST_F(GridTest, KeysThatChangeNoResultMayChangeAndADatasetMayBeMoved) {
  const auto made = [&](const char* folder, const char* contents) {
    std::filesystem::create_directory(folder_ / folder);
    const std::string file = folder_ / folder / "d.beton";
    std::ofstream(file) << contents;
    return file;
  };
  const std::string first = made("first", "xxx"), moved = made("moved there, today", "xxx");
  const std::string other = made("other", "xxxxxxx");
  write_sweep("axes: {fake.quality: [0.1, 0.2]}\nset: {data.num_workers: 1}");
  ASSERT_EQ(grid({"--data.train_dataset=" + first}).exit_code, 0);
  const ChildResult again =
      grid({"--data.train_dataset=" + moved, "--data.num_workers=2", "--logging.every=5"});
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_THAT(again.output, HasSubstr("0.2000"));
  EXPECT_EQ(fake_log(" start ").size(), 2U);
  const ChildResult run = grid({"--data.train_dataset=" + other});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.errors, Names(folder_ / "s.yaml", folder_ / "g", other, 3, 7));
  // Another file of the same size, such as another fold.
  const std::string fold = folder_ / "first/fold.beton";
  std::ofstream(fold) << "yyy";
  const ChildResult renamed = grid({"--data.train_dataset=" + fold});
  EXPECT_EQ(renamed.exit_code, 2);
  EXPECT_THAT(renamed.errors, Names(folder_ / "s.yaml", "d.beton", fold));
  EXPECT_EQ(fake_log(" start ").size(), 2U);
}

TEST_F(GridTest, ADatasetOfUnknownSizeIsKnownByItsName) {
  write_sweep("axes: {fake.quality: [0.1]}");
  ASSERT_EQ(grid({"--data.train_dataset=http://a/first.beton"}).exit_code, 0);
  EXPECT_EQ(grid({"--data.train_dataset=http://b/first.beton"}).exit_code, 0);
  const ChildResult other = grid({"--data.train_dataset=http://a/other.beton"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.errors, Names(folder_ / "g", "first.beton", "http://a/other.beton"));
  EXPECT_EQ(fake_log(" start ").size(), 1U);
}

TEST_F(GridTest, AFolderThatRecordsOnlyItsRecipeIsContinued) {
  write_sweep("axes: {fake.quality: [0.1]}");
  ASSERT_EQ(grid().exit_code, 0);
  json facts = json::parse(text_of("g/sweep.json"));
  for (const char* key : {"checked", "dataset_bytes", "dataset_names"})
    EXPECT_EQ(facts.erase(key), 1U);
  std::ofstream(folder_ / "g/sweep.json") << facts;
  const ChildResult run = grid();
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(fake_log(" start ").size(), 1U);
}

TEST_F(GridTest, AnArrayTaskOfAChangedRecipeIsRefused) {
  write_sweep("axes: {fake.quality: [0.1, 0.2]}");
  EXPECT_EQ(grid({"--trial", "0"}).exit_code, 0);
  EXPECT_EQ(grid({"--trial", "0"}).exit_code, 0);
  std::ofstream(folder_ / "r.yaml") << "training: {epochs: 2}\n";
  const ChildResult run = grid({"--trial", "1"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.errors, Names(folder_ / "s.yaml", folder_ / "g", folder_ / "r.yaml"));
  EXPECT_EQ(fake_log(" start ").size(), 1U);
}

TEST_F(GridTest, ADryRunThatCannotBeStartedIsAnErrorAndNoCrash) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the undefined-behaviour sanitizer needs a pipe to look at an object's type";
#endif
  write_sweep("axes: {fake.quality: [0.1, 0.2]}");
  std::vector<std::string> few_files = {"/bin/bash", "-c", "ulimit -n 7; exec \"$@\"", "bash"};
  for (const std::string& word : command()) few_files.push_back(word);
  const ChildResult run = run_child(few_files, std::chrono::minutes(1));
  EXPECT_EQ(run.exit_code, 5);
  EXPECT_THAT(run.errors, HasSubstr(std::strerror(EMFILE)));
}

TEST_F(GridTest, AnExtendedSweepRunsOnlyNewTrials) {
  write_sweep("axes: {fake.quality: [0.1, 0.2]}");
  EXPECT_EQ(grid().exit_code, 0);
  write_sweep("axes: {fake.quality: [0.3, 0.2, 0.1]}");
  EXPECT_EQ(grid().exit_code, 0);
  EXPECT_EQ(fake_log(" start ").size(), 3U);
}

TEST_F(GridTest, FailedTrialsAreRetriedOnRequest) {
  write_sweep("axes: {fake.script: [exit:1+done]}");
  const ChildResult run = grid();
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.errors, Names("failed", "exit code 1"));
  EXPECT_EQ(grid().exit_code, 1);
  EXPECT_EQ(grid({"--retry-failed"}).exit_code, 0);
  EXPECT_EQ(fake_log(" start ").size(), 2U);
}

TEST_F(GridTest, TheReasonOfAFailureIsThatOfTheLastAttempt) {
  write_sweep("axes: {fake.script: ['exit:5+kill:KILL', 'kill:KILL+kill:KILL+exit:5']}");
  EXPECT_EQ(grid().exit_code, 1);
  const json trials = results().at("trials");
  EXPECT_EQ(trials[0].at("starts"), 3);
  const std::string killed = trials[0].at("reason"), ended = trials[1].at("reason");
  EXPECT_THAT(killed, Names("SIGKILL"));
  EXPECT_THAT(killed, testing::Not(HasSubstr("as scripted")));
  EXPECT_THAT(ended, Names("exit code 5", "as scripted: exit:5"));
}

TEST_F(GridTest, MedianRuleStopsBadTrialsWithACheckpoint) {
  write_sweep(
      "axes: {fake.quality: [0.9, 0.8, 0.7, 0.1]}\nset: {fake.script: 'epochs:30'}\nearly_stop: "
      "median");
  const ChildResult run = grid({"--json"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json all = json::parse(run.output);
  EXPECT_EQ(all.at("trials")[0].at("status"), "done");
  const json& bad = all.at("trials")[3];
  EXPECT_EQ(bad.at("status"), "stopped");
  EXPECT_EQ(bad.at("last_value"), 0.1);
  // The trial with 0.7 may also be stopped: once the bad trial counts, 0.7 is below the median.
  EXPECT_EQ(fake_log("saved").size(), std::size_t{all.at("counts").at("stopped")});
  EXPECT_EQ(all.at("ranking")[3].at("count"), 0);
  EXPECT_EQ(grid().exit_code, 0);
  const ChildResult task = grid({"--trial", "3"});
  EXPECT_EQ(task.exit_code, 0);
  EXPECT_THAT(task.errors, Names(bad.at("trial").get<std::string>(), "stopped"));
  EXPECT_EQ(fake_log(" start ").size(), 4U);
}

TEST_F(GridTest, AshaSpendsItsEpochsOnTheBest) {
  write_sweep(
      "axes: {fake.quality: [0.6, 0.1, 0.2, 0.9, 0.3, 0.4]}\n"
      "set: {fake.script: 'epochs:30'}\nearly_stop: {asha: {min_epochs: 2}}");
  const ChildResult run = grid({"--json"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json all = json::parse(run.output);
  EXPECT_EQ(all.at("ranking")[0].at("settings").at("fake.quality"), "0.9");
  EXPECT_EQ(all.at("ranking")[0].at("count"), 1);
  EXPECT_GE(all.at("counts").at("stopped"), 3);
  for (const json& trial : all.at("trials")) {
    if (trial.at("status") == "stopped") {
      EXPECT_LT(trial.at("last_epoch"), 29);
    }
  }
  // The results are final: nothing is started again.
  const std::size_t starts = fake_log(" start ").size();
  EXPECT_EQ(grid().exit_code, 0);
  EXPECT_EQ(fake_log(" start ").size(), starts);
}

TEST_F(GridTest, AshaStopsATrialOnceAtARungWhateverKillsTheGrid) {
  write_sweep(
      "axes: {fake.quality: [0.6, 0.1, 0.2, 0.9, 0.3, 0.8]}\n"
      "set: {fake.script: 'epochs:30'}\nearly_stop: {asha: {min_epochs: 1, reduction: 2}}");
  for (const int epochs : {3, 8, 20}) kill_after(epochs);
  ASSERT_EQ(grid().exit_code, 0);
  EXPECT_EQ(results().at("ranking")[0].at("settings").at("fake.quality"), "0.9");
  std::ifstream journal(folder_ / "g/results.jsonl");
  std::set<std::string> stopped;
  int decisions = 0;
  for (std::string line; std::getline(journal, line);) {
    const json record = json::parse(line);
    const std::string trial = record.value("trial", "");
    if (record.at("event") == "rung") {
      stopped.erase(trial);
      ++decisions;
    } else if (record.value("status", "") == "stopped") {
      EXPECT_TRUE(stopped.insert(trial).second) << trial << " was stopped twice at a rung";
    }
  }
  EXPECT_GT(decisions, 0);
}

TEST_F(GridTest, ArrayTasksRunOneTrialEachAndTheirResultsMerge) {
  write_sweep("axes: {fake.quality: [0.1, 0.2, 0.3]}");
  for (const char* number : {"2", "0"}) EXPECT_EQ(grid({"--trial", number}).exit_code, 0);
  EXPECT_EQ(grid({"--trial", "3"}).exit_code, 2);
  EXPECT_EQ(results().at("counts").at("done"), 2);
  EXPECT_EQ(grid().exit_code, 0);
  EXPECT_EQ(fake_log(" start ").size(), 3U);
  const ChildResult script = grid({"--slurm-script"});
  EXPECT_THAT(script.output, HasSubstr("#SBATCH --array=0-2\n"));
  EXPECT_THAT(script.output, HasSubstr("#SBATCH --cpus-per-task=1\n"));
  EXPECT_THAT(script.output, HasSubstr("srun ${SLURM_CPUS_PER_TASK:+--cpus-per-task=$SLURM_CPUS_"));
  std::ofstream(folder_ / "array.sh") << script.output;
  EXPECT_EQ(run_child({"/bin/bash", "-n", folder_ / "array.sh"}, std::chrono::minutes(1)).errors,
            "");
}

TEST_F(GridTest, ATaskSaysWhyItsTrialDoesNotRunAgain) {
  write_sweep("axes: {fake.quality: [0.25], fake.script: [done, 'exit:12', 'exit:4']}");
  EXPECT_EQ(grid().exit_code, 1);
  const json trials = results().at("trials");
  const auto again = [&](std::size_t index, int code) {
    const ChildResult run = grid({"--trial", std::to_string(index)});
    EXPECT_EQ(run.exit_code, code);
    EXPECT_EQ(test::occurrences(run.errors, "\n"), 1) << run.errors;
    EXPECT_THAT(run.errors, testing::StartsWith(trials.at(index).at("trial").get<std::string>()));
    return run.errors;
  };
  EXPECT_THAT(again(0, 0), Names("done", "top_1", "0.2500"));
  EXPECT_THAT(again(1, 0), Names("diverged"));
  EXPECT_THAT(again(2, 1), Names("failed", 4, "--retry-failed"));
  EXPECT_EQ(fake_log(" start ").size(), 3U);
}

TEST_F(GridTest, AnArrayTaskTrainsTheTrialThatTheSweepHadWhenTheScriptWasMade) {
  write_sweep("axes: {fake.quality: [0.1, 0.2]}");
  const std::string precast = test::bin_dir() + "/precast";
  const auto run = [](const std::vector<std::string>& words) {
    return run_child(words, std::chrono::minutes(1));
  };
  std::ofstream(folder_ / "array.sh")
      << run({precast, "grid", folder_ / "s.yaml", "--slurm-script"}).output;
  std::ofstream(folder_ / "srun") << "#!/bin/bash\nexec \"$@\" --program '" << test::source_dir()
                                  << "/tests/support/fake_train'\n";
  std::filesystem::permissions(folder_ / "srun", std::filesystem::perms::owner_all);
  const auto task = [&](const std::string& index) {
    return run({"/usr/bin/env", "-u", "SLURM_CPUS_PER_TASK", "SLURM_ARRAY_TASK_ID=" + index,
                "PATH=" + folder_.path().string() + ":/usr/bin:/bin", "/bin/bash",
                folder_ / "array.sh"});
  };
  write_sweep("axes: {fake.quality: [0.3, 0.1, 0.2]}");
  const ChildResult second = task("1");
  EXPECT_EQ(second.exit_code, 0) << second.errors;
  const json trials = results().at("trials");
  EXPECT_EQ(trials.at(2).at("settings").at("fake.quality"), "0.2");
  EXPECT_EQ(trials.at(2).at("status"), "done");
  const std::string id = trials.at(2).at("trial");
  EXPECT_TRUE(std::filesystem::exists(folder_ / ("g/results-" + id + ".jsonl")));
  write_sweep("axes: {fake.quality: [0.3, 0.2]}");
  const ChildResult first = task("0");
  EXPECT_EQ(first.exit_code, 2);
  EXPECT_THAT(first.errors, Names("--trial", folder_ / "s.yaml"));
  EXPECT_EQ(fake_log(" start ").size(), 1U);
}

TEST_F(GridTest, ADryRunOfOneTrialTrainsNothing) {
  write_sweep("axes: {fake.quality: [0.1, 0.2]}");
  const ChildResult run = grid({"--trial", "1", "--dry-run"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.output, testing::StartsWith("   1  quality0.2-"));
  EXPECT_EQ(test::occurrences(run.output, "\n"), 1);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "g"));
  const std::string id = run.output.substr(6, run.output.size() - 7);
  EXPECT_EQ(grid({"--trial", id, "--dry-run"}).output, run.output);
  write_sweep("axes: {fake.quality: [0.1, 0.2]}\nset: {fake.refused: 1}");
  EXPECT_EQ(grid({"--trial", "1", "--dry-run"}).exit_code, 2);
  EXPECT_TRUE(fake_log().empty());
}

TEST_F(GridTest, OptionsThatExcludeEachOtherAreRejected) {
  write_sweep("axes: {fake.quality: [0.1, 0.2]}");
  const std::pair<std::string, std::string> pairs[] = {
      {"--status", "--dry-run"},       {"--status", "--trial=0"},
      {"--status", "--slurm-script"},  {"--slurm-script", "--dry-run"},
      {"--slurm-script", "--trial=0"}, {"--slurm-script", "--json"},
      {"--trial=0", "--json"}};
  for (const auto& [one, other] : pairs) {
    const ChildResult run = grid({one, other});
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_EQ(run.output, "");
    EXPECT_THAT(run.errors, Names(one.substr(0, one.find('=')), other.substr(0, other.find('='))));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "g"));
  EXPECT_TRUE(fake_log().empty());
}

}  // namespace
}  // namespace precast::tools
