#include "tools/experiments/grid/shared_loaders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "framework/core/file.h"
#include "tests/support/message_matchers.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_file.h"
#include "tools/experiments/grid/ranking.h"

namespace precast::tools {
namespace {

using test::Names;
using testing::ElementsAre;

Trial trial(const std::string& id, std::vector<Setting> settings) {
  return {.id = id, .recipe = "r.yaml", .settings = std::move(settings), .folder = "runs"};
}

TEST(LoadingOfTest, DependsOnTheSettingsThatCanChangeBatchesAlone) {
  const std::string base = loading_key_of(trial("a", {{"lr.lr", "0.1"}, {"training.seed", "1"}}));
  EXPECT_EQ(base, loading_key_of(trial("b", {{"training.seed", "1"}, {"lr.lr", "0.2"}})));
  EXPECT_EQ(base, loading_key_of(trial("b", {{"training.seed", "1"},
                                             {"training.weight_decay", "0"},
                                             {"model.arch", "resnet50"},
                                             {"logging.every", "1"}})));
  for (const char* key :
       {"data.order", "data.subset", "pipeline.train", "resolution.max_res", "methods", "plugins",
        "model.in_channels", "training.batch_size", "training.global_batch_size", "training.epochs",
        "training.device", "training.distributed"})
    EXPECT_NE(base, loading_key_of(trial("c", {{"training.seed", "1"}, {key, "1"}}))) << key;
  EXPECT_NE(base, loading_key_of(trial("d", {{"training.seed", "2"}})));
}

TEST(InCohortsTest, TrialsThatLoadTheSameFollowOneAnother) {
  Sweep sweep;
  for (const char* lr : {"1", "2", "3"})
    for (const char* seed : {"0", "1"})
      sweep.trials.push_back(
          trial(std::string("lr") + lr + "_seed" + seed, {{"lr.lr", lr}, {"training.seed", seed}}));
  std::vector<std::string> ids;
  for (const Trial& one : order_by_cohort(sweep)) ids.push_back(one.id);
  EXPECT_THAT(ids, ElementsAre("lr1_seed0", "lr2_seed0", "lr3_seed0", "lr1_seed1", "lr2_seed1",
                               "lr3_seed1"));
}

/// A program that appends its arguments to the file `starts` and runs `then`.
std::filesystem::path make_program(const test::TemporaryFolder& folder, const std::string& then) {
  const std::filesystem::path program = folder / "program";
  std::ofstream(program) << "#!/bin/sh\necho \"$@\" >>" << (folder / "starts").string() << '\n'
                         << then << '\n';
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  return program;
}

std::string starts_in(const test::TemporaryFolder& folder) {
  return test::read_text(folder / "starts");
}

TEST(SharedLoadersTest, ALoaderThatDiesBeforeATrialAsksIsNotStartedAgain) {
  const test::TemporaryFolder folder;
  Sweep sweep;
  sweep.folder = folder.path();
  const std::vector<Slot> slots(2, Slot{.name = "cpu", .gpu = "", .cores = allowed_cores()});
  SharedLoaders loaders(sweep, make_program(folder, "exit 5"), slots);
  const Trial first = trial("a", {});
  const Trial second = trial("b", {});
  const NextStart next{.trial = first, .slot = slots[0], .free_slots = 1, .waiting = {&second}};
  EXPECT_EQ(loaders.prepare(next), std::nullopt);
  // The pool calls update() whenever a process ends, possibly before it calls prepare() for the
  // trial again.
  ASSERT_TRUE(test::eventually([&] {
    loaders.update();
    return loaders.cohort_count() == 0;
  }));
  EXPECT_EQ(loaders.prepare(next), std::vector<std::string>{});
  EXPECT_EQ(test::occurrences(starts_in(folder), "serve"), 1);
}

TEST(SharedLoadersTest, ALoaderThatHangsIsGivenUpWithOneWarning) {
  const test::TemporaryFolder folder;
  Sweep sweep;
  sweep.folder = folder.path();
  const std::vector<Slot> slots(2, Slot{.name = "cpu", .gpu = "", .cores = allowed_cores()});
  SharedLoaders loaders(sweep, make_program(folder, "exec sleep 1000"), slots,
                        std::chrono::milliseconds(125));
  const Trial first = trial("a", {});
  const Trial second = trial("b", {});
  const NextStart next{.trial = first, .slot = slots[0], .free_slots = 1, .waiting = {&second}};
  testing::internal::CaptureStderr();
  EXPECT_EQ(loaders.prepare(next), std::nullopt);
  EXPECT_TRUE(test::eventually([&] { return loaders.prepare(next).has_value(); }));
  EXPECT_TRUE(loaders.prepare({.trial = second, .slot = slots[1], .free_slots = 0, .waiting = {}}));
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, Names("warning", "0.125", folder / "loaders"));
  EXPECT_EQ(test::occurrences(text, "warning"), 1);
}

TEST(SharedLoadersTest, ACohortIsAtMostAsLargeAsARing) {
  const test::TemporaryFolder folder;
  Sweep sweep;
  sweep.folder = folder.path();
  const Slot slot{.name = "cpu", .gpu = "", .cores = allowed_cores()};
  SharedLoaders loaders(sweep, make_program(folder, "exit 5"), {slot});
  const std::vector<Trial> trials(100, trial("a", {}));
  NextStart next{.trial = trials[0], .slot = slot, .free_slots = 99, .waiting = {}};
  for (std::size_t i = 1; i < trials.size(); ++i) next.waiting.push_back(&trials[i]);
  EXPECT_EQ(loaders.prepare(next), std::nullopt);
  EXPECT_TRUE(test::eventually(
      [&] { return starts_in(folder).find("--consumers 64") != std::string::npos; }));
}

TEST(SharedDecodesTest, AreTheSumsOfTheLastRecordOfEachLoader) {
  const test::TemporaryFolder folder;
  EXPECT_FALSE(count_shared_decodes(folder.path()));
  Sweep sweep;
  sweep.folder = folder.path();
  EXPECT_FALSE(describe_grid(sweep, {}).contains("shared_loaders"));
  create_folders(folder / "loaders");
  std::ofstream(folder / "loaders/a") << "=> ring 'a'\n"
                                         "{\"samples_decoded\": 10, \"samples_delivered\": 30}\n"
                                         "{\"samples_decoded\": 20, \"samples_delivered\": 60}\n"
                                         "{\"samples_decoded\": 30, \"sampl";
  std::ofstream(folder / "loaders/b") << "{\"samples_decoded\": 5, \"samples_delivered\": 9}\n";
  std::ofstream(folder / "loaders/killed") << "=> ring 'killed'\n";
  const auto shared = count_shared_decodes(folder.path());
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->decoded, 25U);
  EXPECT_EQ(shared->delivered, 69U);
  EXPECT_EQ(shared->saved(), 44U);
  EXPECT_THAT(ranking_table(describe_grid(sweep, {})), Names(25, 69, 44));
}

}  // namespace
}  // namespace precast::tools
