// `precast reproduce` as a user starts it, with a program that only pretends to train
// (tests/support/fake_train).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "framework/core/file_lock.h"
#include "framework/process/child_process.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_file.h"

namespace precast::tools {
namespace {

using nlohmann::json;
using test::Names;
using testing::HasSubstr;
using testing::Not;

class ReproduceTest : public ::testing::Test {
 protected:
  ReproduceTest() {
    ::setenv("FAKE_LOG", (folder_ / "fake.log").c_str(), 1);
    std::ofstream(folder_ / "r.yaml") << "training: {epochs: 1}\n";
    write_table("exit:5+done");
  }
  /// Writes a table of three rows. The run of the second row follows `script`.
  void write_table(const std::string& script) {
    std::ofstream(folder_ / "table.yaml") << R"(
title: Three rows
sources: [{id: paper, title: A paper, url: "https://example.org"}]
rows:
  - {id: a, model: Net, recipe: r.yaml, settings: {fake.quality: 0.25},
     published: [{source: paper, top_1: 0.3, minutes: 10, hardware: 8 x A100}]}
  - {id: b, model: Net, recipe: r.yaml, settings: {fake.quality: 0.5, fake.script: ")"
                                          << script << R"("}}
  - {id: c, model: Net, recipe: r.yaml, settings: {fake.quality: 0.75}}
)";
  }
  std::vector<std::string> command(const std::vector<std::string>& options) const {
    std::vector<std::string> all = {test::bin_dir() + "/precast",
                                    "reproduce",
                                    folder_ / "table.yaml",
                                    "--folder",
                                    folder_ / "out",
                                    "--program",
                                    test::source_dir() + "/tests/support/fake_train"};
    all.insert(all.end(), options.begin(), options.end());
    return all;
  }
  ChildResult reproduce(const std::vector<std::string>& options = {}) const {
    return run_child(command(options), std::chrono::minutes(1));
  }
  std::string text_of(const std::string& name) const { return test::read_text(folder_ / name); }
  /// The number of training runs that were started.
  std::size_t starts() const {
    return static_cast<std::size_t>(test::occurrences(text_of("fake.log"), " start "));
  }

  test::TemporaryFolder folder_;
};

TEST_F(ReproduceTest, TrainsEveryRowAndLeavesTheTable) {
  write_table("done");
  const ChildResult run = reproduce({"--seeds", "2"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.output, HasSubstr("| a | Net | 0.2500 ± 0.0000 | 0.3000 |"));
  EXPECT_EQ(text_of("out/table.md"), run.output);
  const json table = json::parse(text_of("out/table.json"));
  EXPECT_EQ(table.at("rows").size(), 3U);
  EXPECT_EQ(table.at("rows")[2].at("top_1").at("seeds"), 2);
  EXPECT_THAT(text_of("out/report.html"), HasSubstr("Three rows"));
  EXPECT_EQ(starts(), 6U);
}

TEST_F(ReproduceTest, ContinuesAfterAKillAndTrainsNothingTwice) {
  write_table("hang+hang+done");
  const ChildResult before = reproduce({"--rows", "a"});
  ASSERT_EQ(before.exit_code, 0) << before.errors;
  for (const std::string start : {"1", "2"}) {
    test::Program program(command({}));
    EXPECT_TRUE(test::eventually(
        [&] { return test::occurrences(text_of("fake.log"), "b-seed0 start " + start) == 1; }));
    ::kill(program.id(), SIGKILL);
    program.wait();
  }
  const ChildResult after = reproduce();
  ASSERT_EQ(after.exit_code, 0) << after.errors;
  EXPECT_THAT(after.output, HasSubstr("| b | Net | 0.5000 |"));
  EXPECT_THAT(after.output, HasSubstr("| c | Net | 0.7500 |"));
  EXPECT_EQ(test::occurrences(text_of("fake.log"), "a-seed0 start"), 1);
  EXPECT_EQ(test::occurrences(text_of("fake.log"), "b-seed0 done"), 1);
  EXPECT_EQ(test::occurrences(text_of("fake.log"), "c-seed0 start"), 1);
}

TEST_F(ReproduceTest, FailuresAreRetriedAndARowThatKeepsFailingIsNamed) {
  write_table("exit:4");
  const ChildResult run = reproduce();
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output, testing::ContainsRegex("\\| b \\| Net ( *\\| - )+\\|.* 0: failed \\|"));
  EXPECT_THAT(run.output, HasSubstr("| c | Net | 0.7500 |")) << "the other rows are trained";
}

TEST_F(ReproduceTest, AMistakeInAnyRowStopsBeforeTheFirstTraining) {
  const ChildResult run = reproduce({"--fake.refused=1"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(test::occurrences(run.errors, "fake.refused"), 1) << "once, not once per row";
  EXPECT_EQ(starts(), 0U);
}

TEST_F(ReproduceTest, MissingFilesAreIoErrorsBeforeTheFirstTraining) {
  std::ofstream(folder_ / "failing") << "#!/bin/bash\necho 'error: d.beton: as scripted' >&2\n"
                                        "exit 5\n";
  std::filesystem::permissions(folder_ / "failing", std::filesystem::perms::owner_all);
  std::vector<std::string> words = command({});
  *(std::ranges::find(words, "--program") + 1) = folder_ / "failing";
  const ChildResult dataset = run_child(words, std::chrono::minutes(1));
  EXPECT_EQ(dataset.exit_code, 5);
  EXPECT_THAT(dataset.errors, Names("d.beton"));
  std::filesystem::remove(folder_ / "r.yaml");
  const ChildResult recipe = reproduce();
  EXPECT_EQ(recipe.exit_code, 5);
  EXPECT_THAT(recipe.errors, Names("table.yaml:5", "rows[0].recipe", "rows[1].recipe",
                                   "rows[2].recipe", folder_ / "r.yaml"));
  EXPECT_EQ(starts(), 0U);
}

TEST_F(ReproduceTest, AnEvaluationIsRefusedBeforeTheFirstTraining) {
  const ChildResult given = reproduce({"--training.eval_only=true"});
  EXPECT_EQ(given.exit_code, 2);
  EXPECT_THAT(given.errors, Names("command line", "training.eval_only", "precast eval"));
  const std::string on = "--training.eval_only=1", off = "--training.eval_only=0";
  EXPECT_EQ(reproduce({off, on, "--dry-run"}).exit_code, 2);
  EXPECT_EQ(reproduce({on, off, "--dry-run"}).exit_code, 0);
  std::ofstream(folder_ / "r.yaml") << "training: {eval_only: true}\n";
  EXPECT_EQ(reproduce({off, "--dry-run"}).exit_code, 0);
  const ChildResult written = reproduce();
  EXPECT_EQ(written.exit_code, 2);
  EXPECT_THAT(written.errors, Names(folder_ / "r.yaml", "training.eval_only", "precast eval"));
  EXPECT_EQ(starts(), 0U);
}

TEST_F(ReproduceTest, AKeyThatNoRowReadsStopsBeforeTheFirstTraining) {
  write_table("epochs:1");
  const ChildResult run = reproduce({"--rows", "b", "--fake.option=1"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(test::occurrences(run.errors, "fake.option"), 1) << run.errors;
  EXPECT_EQ(starts(), 0U);
  EXPECT_EQ(reproduce({"--fake.option=1"}).exit_code, 0) << "the other rows read it";
  EXPECT_EQ(reproduce({"--folder", folder_ / "new", "--fake.published=1"}).exit_code, 2);
}

TEST_F(ReproduceTest, ResultsOfOtherDatasetsAreNotMixedIn) {
  write_table("done");
  std::filesystem::create_directory(folder_ / "moved");
  for (const auto& [name, bytes] : {std::pair("first", 3), std::pair("moved/first", 3),
                                    std::pair("fold", 3), std::pair("other", 7)})
    std::ofstream(folder_ / name) << std::string(static_cast<std::size_t>(bytes), 'x');
  const auto with = [&](const std::string& key, const std::string& files) {
    return reproduce({"--data." + key + "=" + files});
  };
  const std::string first = folder_ / "first", moved = folder_ / "moved/first";
  const std::string fold = folder_ / "fold", other = folder_ / "other";
  ASSERT_EQ(with("train_dataset", first).exit_code, 0);
  EXPECT_EQ(with("train_dataset", moved).exit_code, 0);
  EXPECT_EQ(with("train_dataset", "http://127.0.0.1/first").exit_code, 0) << "the size is unknown";
  EXPECT_EQ(starts(), 3U);
  for (const std::string& files : {other, "[" + first + ", " + other + "]"}) {
    const ChildResult run = with("train_dataset", files);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.errors,
                Names("data.train_dataset", 3, files == other ? 7 : 10, "a-seed0", "--folder"));
  }
  for (const std::string& files : {fold, std::string("http://127.0.0.1/fold")}) {
    const ChildResult run = with("train_dataset", files);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.errors, Names("data.train_dataset", "first", "fold", "a-seed0", "--folder"));
  }
  EXPECT_EQ(reproduce({"--status"}).exit_code, 0);
  for (const char* fact : {"dataset_bytes", "dataset_names"})
    EXPECT_EQ(text_of("out/table.md").find(fact), std::string::npos);

  // A folder of an earlier version, which recorded neither sizes nor names.
  json begun = json::parse(text_of("out/reproduce.json"));
  for (json& trial : begun)
    for (const char* fact : {"dataset_bytes", "dataset_names"}) EXPECT_EQ(trial.erase(fact), 1U);
  std::ofstream(folder_ / "out/reproduce.json") << begun;
  EXPECT_EQ(with("train_dataset", other).exit_code, 0);
}

TEST_F(ReproduceTest, ADatasetOfTheRecipeThatIsReplacedIsAnotherDataset) {
  write_table("done");
  std::ofstream(folder_ / "r.yaml") << "data: {val_dataset: " << folder_ / "val"
                                    << "}\n";
  std::ofstream(folder_ / "val") << "xxx";
  ASSERT_EQ(reproduce().exit_code, 0);
  EXPECT_EQ(reproduce().exit_code, 0);
  std::ofstream(folder_ / "val") << "xxxxxxx";
  const ChildResult run = reproduce();
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.errors, Names("data.val_dataset", 3, 7));
}

TEST_F(ReproduceTest, ResultsOfOtherKeysAreNotMixedIn) {
  write_table("done");
  ASSERT_EQ(reproduce().exit_code, 0);
  const ChildResult other = reproduce({"--fake.quality=0.9"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.errors, Names("fake.quality", "0.25", "0.9", "--folder"));
  for (const std::string key : {"--data.num_workers=7", "--data.in_memory=0"})
    EXPECT_EQ(reproduce({key}).exit_code, 0) << key << " changes no result";
  EXPECT_EQ(reproduce({"--fake.quality=0.9", "--dry-run"}).exit_code, 2);

  // A folder of an earlier version, which also recorded keys that change no result.
  json begun = json::parse(text_of("out/reproduce.json"));
  for (json& trial : begun) trial["data.in_memory"] = "0";
  std::ofstream(folder_ / "out/reproduce.json") << begun;
  EXPECT_EQ(reproduce().exit_code, 0);
  EXPECT_EQ(starts(), 3U);
}

TEST_F(ReproduceTest, ResultsOfTwoVersionsOfARecipeAreNotShownTogether) {
  write_table("done");
  ASSERT_EQ(reproduce({"--rows", "a", "--seeds", "2"}).exit_code, 0);
  std::ofstream(folder_ / "r.yaml") << "training: {epochs: 2}\n";
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--rows", "b"}, {"--rows", "b", "--dry-run"}}) {
    const ChildResult run = reproduce(options);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.errors, Names(folder_ / "out", "a-seed0", "--folder"));
  }
  const ChildResult status = reproduce({"--status"});
  EXPECT_EQ(status.exit_code, 0);
  EXPECT_THAT(status.errors, Names("warning", folder_ / "out", "a-seed0", "a-seed1", "--folder"));
  std::ofstream(folder_ / "r.yaml") << "training: {epochs: 1}\n";
  EXPECT_EQ(reproduce({"--status"}).errors, "");
  EXPECT_EQ(reproduce({"--rows", "b"}).exit_code, 0);
}

TEST_F(ReproduceTest, ARecipeThatChangesWhileRowsRunEndsTheTableBeforeTheNextStart) {
  write_table("hang");
  std::filesystem::create_directories(folder_ / "out/c-seed0");
  auto lock = FileLock::try_lock(folder_ / "out/c-seed0/lock");
  ASSERT_TRUE(lock.has_value());
  test::Program program(command({"--at-once", "2"}));
  // The last row does not start, because its lock is taken.
  EXPECT_TRUE(test::eventually([&] {
    const std::string log = text_of("fake.log");
    return test::occurrences(log, "a-seed0 done") == 1 &&
           test::occurrences(log, "b-seed0 start") == 1;
  }));
  std::ofstream(folder_ / "r.yaml") << "training: {epochs: 99}\n";
  lock.reset();
  EXPECT_EQ(program.wait(), 2) << program.err;
  EXPECT_THAT(program.err, Names(folder_ / "out", "c-seed0", folder_ / "r.yaml", "--folder"));
  EXPECT_EQ(starts(), 2U);
  EXPECT_EQ(test::occurrences(text_of("fake.log"), "b-seed0 saved"), 1);
  EXPECT_FALSE(json::parse(text_of("out/reproduce.json")).contains("c-seed0"));
}

TEST_F(ReproduceTest, ARowDoesNotStartAgainWithAnotherRecipe) {
  std::vector<std::string> words = command({"--rows", "a"});
  std::string& program = *(std::ranges::find(words, "--program") + 1);
  std::ofstream(folder_ / "preempted")
      << "#!/bin/bash\nfor word in \"$@\"; do [[ $word == --dry-run ]] && exec '" << program
      << "' \"$@\"; done\necho 'training: {epochs: 99}' >'" << (folder_ / "r.yaml").string()
      << "'\necho 'a start 1' >>\"$FAKE_LOG\"\nexit 85\n";
  std::filesystem::permissions(folder_ / "preempted", std::filesystem::perms::owner_all);
  program = folder_ / "preempted";
  const ChildResult run = run_child(words, std::chrono::minutes(1));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.errors, Names(folder_ / "out", "a-seed0", folder_ / "r.yaml", "--folder"));
  EXPECT_EQ(starts(), 1U);
}

TEST_F(ReproduceTest, ResultsOfOtherDatasetsAndKeysOfARowAreNotShownTogether) {
  write_table("done");
  for (const auto& [name, bytes] : {std::pair("first", 3), std::pair("other", 7)})
    std::ofstream(folder_ / name) << std::string(static_cast<std::size_t>(bytes), 'x');
  const auto with = [&](const char* row, const std::string& file, const std::string& key) {
    return reproduce({"--rows", row, "--data.train_dataset=" + (folder_ / file).string(), key});
  };
  ASSERT_EQ(with("a", "first", "--fake.quality=0.4").exit_code, 0);
  const ChildResult other = with("b", "other", "--fake.quality=0.4");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.errors, Names("data.train_dataset", 3, 7, "a-seed0"));
  // The table lists the keys of the command line for each row.
  EXPECT_EQ(with("c", "first", "--fake.quality=0.6").exit_code, 0);
  EXPECT_EQ(reproduce({"--status"}).errors, "");

  std::string table = text_of("table.yaml");
  table.replace(table.find("fake.quality: 0.25"), 18, "fake.quality: 0.25, fake.gpus: 0");
  std::ofstream(folder_ / "table.yaml") << table;
  const ChildResult changed = with("b", "first", "--fake.quality=0.4");
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_THAT(changed.errors, Names("fake.gpus", "a-seed0"));
}

TEST_F(ReproduceTest, ASignalDuringTheCheckStopsItAndLeavesNoProcess) {
  test::Program run(command({"--fake.check_hangs=1"}));
  EXPECT_TRUE(
      test::eventually([this] { return test::occurrences(text_of("fake.log"), "check ") > 0; }));
  ::kill(run.id(), SIGTERM);
  EXPECT_EQ(run.wait(), 85) << run.err;
  const std::string log = text_of("fake.log");
  EXPECT_EQ(test::occurrences(log, "\n"), 1) << log;
  EXPECT_EQ(::kill(std::stoi(log.substr(log.find(' '))), 0), -1);
}

TEST_F(ReproduceTest, ASecondJobInTheSameFolderIsRefused) {
  write_table("hang+done");
  test::Program first(command({}));
  EXPECT_TRUE(test::eventually(
      [this] { return test::occurrences(text_of("fake.log"), "b-seed0 start") == 1; }));
  const ChildResult second = reproduce();
  EXPECT_EQ(second.exit_code, 5);
  EXPECT_THAT(second.errors, Names(folder_ / "out"));
  ::kill(first.id(), SIGTERM);
  EXPECT_EQ(first.wait(), 85) << first.err;
}

TEST_F(ReproduceTest, ARowThatCannotBeRecordedIsNotTrained) {
  write_table("done");
  std::filesystem::create_directory(folder_ / "out");
  std::filesystem::create_symlink("/nowhere/reproduce.json", folder_ / "out/reproduce.json");
  const ChildResult run = reproduce();
  EXPECT_EQ(run.exit_code, 5);
  EXPECT_THAT(run.errors, Names("/nowhere"));
  EXPECT_EQ(starts(), 0U);
}

TEST_F(ReproduceTest, TheTableHoldsWhatEarlierCommandsHaveTrained) {
  write_table("done");
  ASSERT_EQ(reproduce({"--rows", "a", "--seeds", "2"}).exit_code, 0);
  const ChildResult second = reproduce({"--rows", "c"});
  ASSERT_EQ(second.exit_code, 0) << second.errors;
  for (const std::string& text : {second.output, text_of("out/table.md")}) {
    EXPECT_THAT(text, HasSubstr("| a | Net | 0.2500 ± 0.0000 |"));
    EXPECT_THAT(text, HasSubstr("| c | Net | 0.7500 |"));
    EXPECT_THAT(text, Not(HasSubstr("| b |")));
  }
  EXPECT_EQ(reproduce({"--rows", "a,a"}).exit_code, 2);
}

TEST_F(ReproduceTest, AFolderWhoseNameIsNotUtf8GivesValidJson) {
  const std::filesystem::path odd = folder_ / "odd\xff";
  std::filesystem::create_directory(odd);
  for (const char* name : {"r.yaml", "table.yaml"})
    std::filesystem::copy_file(folder_ / name, odd / name);
  const auto reproduce_there = [&](const std::vector<std::string>& options) {
    std::vector<std::string> all = {test::bin_dir() + "/precast",
                                    "reproduce",
                                    odd / "table.yaml",
                                    "--folder",
                                    odd / "out",
                                    "--program",
                                    test::source_dir() + "/tests/support/fake_train"};
    all.insert(all.end(), options.begin(), options.end());
    return run_child(all, std::chrono::minutes(1));
  };
  // A diverged trial has no summary.json, into which fake_train would write the invalid byte.
  const ChildResult run = reproduce_there({"--rows", "a", "--fake.script=exit:12"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  const ChildResult status = reproduce_there({"--status", "--json"});
  EXPECT_EQ(status.exit_code, 0) << status.errors;
  const std::string replaced = "/odd\xef\xbf\xbd/";  // U+FFFD
  const json table = json::parse(status.output);
  EXPECT_THAT(table.at("rows").at(0).at("recipe").get<std::string>(), HasSubstr(replaced));
  EXPECT_EQ(text_of("odd\xff/out/table.json"),
            reproduce_there({"--status", "--json", "--rows", "a"}).output);
  EXPECT_EQ(starts(), 1U);
}

TEST_F(ReproduceTest, ATerminalThatIsGoneEndsNoTraining) {
  write_table("epochs:20");
  std::string shell = "exec 2>/dev/full; exec";
  for (const std::string& word : command({})) shell += " '" + word + "'";
  const ChildResult run = run_child({"/bin/bash", "-c", shell}, std::chrono::minutes(1));
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.output, HasSubstr("| b | Net | 0.5000 |"));
}

TEST_F(ReproduceTest, RowsAreChosenByNameAndShownWithoutTraining) {
  const ChildResult unknown = reproduce({"--rows", "a,z"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.errors, Names("--rows", "'z'"));
  const ChildResult dry = reproduce({"--rows", "c", "--dry-run"});
  EXPECT_EQ(dry.exit_code, 0) << dry.errors;
  EXPECT_THAT(dry.output, HasSubstr("--logging.run_id=c-seed0"));
  EXPECT_THAT(dry.output, Not(HasSubstr("a-seed0")));
  const ChildResult status = reproduce({"--status"});
  EXPECT_EQ(status.exit_code, 0) << status.errors;
  EXPECT_EQ(test::occurrences(status.output, "| 0 of 1 |"), 3) << status.output;
  EXPECT_EQ(starts(), 0U);
}

}  // namespace
}  // namespace precast::tools
