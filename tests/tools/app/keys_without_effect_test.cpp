// Keys that are given although the run or the command does not read them, or cannot follow them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/error.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tools/app/recipe.h"
#include "tools/cli/recipe_arguments.h"

namespace precast::tools {
namespace {

using test::Names;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::ThrowsMessage;

class KeysWithoutEffectTest : public ::testing::Test {
 protected:
  Recipe load(const std::string& text, std::vector<std::string> args = {},
              RecipeUse use = RecipeUse::train) {
    std::ofstream(folder_ / "r.yaml") << text;
    return load_recipe(folder_ / "r.yaml", take_overrides(args), registries_, use);
  }
  /// Loads the params.json of a run of `recipe`.
  Recipe load_saved(const Recipe& recipe, std::vector<std::string> args = {}) {
    std::ofstream(folder_ / "params.json") << recipe.resolved.dump();
    return load_recipe(folder_ / "params.json", take_overrides(args), registries_);
  }
  std::string warnings(const std::string& text, const std::vector<std::string>& args = {},
                       RecipeUse use = RecipeUse::train) {
    testing::internal::CaptureStderr();
    static_cast<void>(load(text, args, use));
    return testing::internal::GetCapturedStderr();
  }
  void expect_refused(const std::string& text, const std::vector<std::string>& args,
                      const test::NamesMatcher& facts, RecipeUse use = RecipeUse::train) {
    EXPECT_THAT([&] { static_cast<void>(load(text, args, use)); },
                ThrowsMessage<ConfigError>(facts));
  }
  static std::vector<std::string> ignored(const Recipe& recipe) {
    std::vector<std::string> keys;
    for (const UnreadKey& key : recipe.ignored_keys) keys.push_back(key.key);
    return keys;
  }

  test::TemporaryFolder folder_;
  Registries registries_ = make_registries();
};

TEST_F(KeysWithoutEffectTest, ABatchSizeThatTheGlobalOneReplacesIsIgnoredUnlessItIsOverridden) {
  const std::string batch = "training.batch_size";
  const std::string on_line = "--training.batch_size=8", global = "--training.global_batch_size=64";
  EXPECT_THAT(ignored(load("training: {batch_size: 8, global_batch_size: 64}\n")),
              ElementsAre(batch));
  EXPECT_THAT(ignored(load("training: {global_batch_size: 64}\n", {on_line})), ElementsAre(batch));
  EXPECT_THAT(ignored(load("", {on_line, global})), ElementsAre(batch));
  EXPECT_THAT(ignored(load("training: {batch_size: 8}\n", {global})), IsEmpty());
  EXPECT_THAT(ignored(load("training: {global_batch_size: 64}\n",
                           {on_line, "--training.global_batch_size=0"})),
              IsEmpty());
}

TEST_F(KeysWithoutEffectTest, ARecordedBatchSizeIsIgnoredOnlyOnTheCommandLine) {
  const Recipe recipe = load("training: {batch_size: 8}\n", {"--training.global_batch_size=64"});
  EXPECT_THAT(ignored(load_saved(recipe)), IsEmpty());
  EXPECT_THAT(ignored(load_saved(recipe, {"--training.batch_size=16"})),
              ElementsAre("training.batch_size"));
}

TEST_F(KeysWithoutEffectTest, KeysOfTrainingSamplesAreErrorsForACommandThatDoesNotTrain) {
  const std::string eval_only = "training: {eval_only: true}\n";
  for (const std::string key : {"data.subset", "data.filter", "data.repeats"}) {
    const std::string value = key == "data.filter" ? "label < 3" : "2";
    const std::string given = "--" + key + "=" + value;
    expect_refused("", {given}, Names("command line", key, "--data.val_dataset=FILE"),
                   RecipeUse::evaluate);
    expect_refused(eval_only, {given}, Names(key));
    EXPECT_NO_THROW(static_cast<void>(load("", {given}))) << key;
  }
  expect_refused("", {"--data.repeats=2"}, Names("data.repeats", 1, "'2'"), RecipeUse::evaluate);
  EXPECT_EQ(warnings("data: {subset: 5, repeats: 2}\n", {}, RecipeUse::evaluate), "");
  EXPECT_EQ(warnings("data: {subset: 5}\n",
                     {"--data.subset=", "--data.filter=", "--data.repeats=1"}, RecipeUse::evaluate),
            "");
}

TEST_F(KeysWithoutEffectTest, OtherKeysOfTrainingAreWarningsOnTheCommandLineOnly) {
  const std::vector<std::string> unread = {
      "training.epochs=3",       "training.batch_size=8",    "training.optimizer=adamw",
      "logging.folder=runs",     "resolution.max_res=192",   "pipeline.train=[horizontal_flip]",
      "data.order=quasi_random", "data.shuffle_window_mb=64"};
  const std::vector<std::string> read = {"training.precision=fp32",   "training.device=cpu",
                                         "training.use_blurpool=1",   "training.loss=bce",
                                         "training.seed=3",           "validation.resolution=64",
                                         "pipeline.val=[whole_image]"};
  const auto all_warnings = [&](const std::vector<std::string>& keys, const std::string& text,
                                RecipeUse use) {
    std::vector<std::string> args;
    for (const std::string& key : keys) args.push_back("--" + key);
    return warnings(text, args, use);
  };
  const std::string eval_only = "training: {eval_only: true}\n";
  for (const auto& [text, use] :
       {std::pair(std::string(), RecipeUse::evaluate), {eval_only, RecipeUse::train}}) {
    const std::string found = all_warnings(unread, text, use);
    for (const std::string& key : unread)
      EXPECT_THAT(found, Names("command line", key.substr(0, key.find('='))));
    EXPECT_EQ(all_warnings(read, text, use), "");
  }
  EXPECT_EQ(warnings("training: {epochs: 3}\nresolution: {max_res: 192}\nlogging: {every: 1}\n", {},
                     RecipeUse::evaluate),
            "");
}

TEST_F(KeysWithoutEffectTest, WithoutCheckpointsThereIsNoBestOneAndNothingToRestore) {
  const std::string none = "checkpoint: {every_epochs: 0";
  const std::string best = none + ", keep_best: 3}\n";
  const std::string restore = none + "}\ntraining: {on_nonfinite: restore}\n";
  expect_refused(best, {}, Names("r.yaml:1:42", "checkpoint.keep_best"));
  expect_refused("", {"--checkpoint.keep_best=3", "--checkpoint.every_epochs=0"},
                 Names("command line", "checkpoint.keep_best"));
  expect_refused(restore, {},
                 Names("r.yaml:2:26", "training.on_nonfinite", "checkpoint.every_steps: 0"));
  for (const std::string& text :
       {none + ", keep_best: 0}\n", none + "}\ntraining: {on_nonfinite: skip}\n",
        none + ", every_steps: 5, keep_best: 3}\ntraining: {on_nonfinite: restore}\n"})
    EXPECT_NO_THROW(static_cast<void>(load(text))) << text;
  for (const std::string& text : {best, restore}) {
    EXPECT_NO_THROW(static_cast<void>(load(text, {}, RecipeUse::evaluate))) << text;
    EXPECT_NO_THROW(static_cast<void>(load(text, {"--training.eval_only=1"}))) << text;
  }
}

TEST_F(KeysWithoutEffectTest, ACommandLineMayTurnCheckpointsOff) {
  const std::string off = "--checkpoint.every_epochs=0", best = "--checkpoint.keep_best=3";
  EXPECT_EQ(warnings("checkpoint: {keep_best: 3}\n", {off}), "");
  EXPECT_THAT(ignored(load("checkpoint: {every_epochs: 0}\n", {best})),
              ElementsAre("checkpoint.keep_best"));
}

TEST_F(KeysWithoutEffectTest, ARecordedRunWithoutCheckpointsIsAccepted) {
  const std::string restore = "training.on_nonfinite";
  Recipe recipe = load("checkpoint: {every_epochs: 0}\n");
  recipe.resolved["checkpoint.keep_best"] = 3;
  recipe.resolved[restore] = "restore";
  EXPECT_EQ(load_saved(recipe).config.training.on_nonfinite, "restore");
  EXPECT_THAT([&] { static_cast<void>(load_saved(recipe, {"--" + restore + "=restore"})); },
              ThrowsMessage<ConfigError>(Names("command line", restore)));
}

TEST_F(KeysWithoutEffectTest, ARateAboveTheHighestOneIsAWarning) {
  for (const char* schedule :
       {"lr_schedule_type: cosine, final_lr: 0.7", "lr_schedule_type: one_cycle, div_factor: 0.5",
        "lr_schedule_type: step, step_ratio: 2, step_length: 1"}) {
    const std::string found =
        warnings("training: {epochs: 4}\nlr: {lr: 0.5, " + std::string(schedule) + "}\n");
    EXPECT_THAT(found, Names("warning", "r.yaml:2", "lr.lr", "0.5")) << schedule;
  }
  for (const char* schedule :
       {"cyclic, lr_peak_epoch: 1", "cosine, warmup_epochs: 1", "one_cycle", "step", "constant"}) {
    EXPECT_EQ(warnings("training: {epochs: 4}\nlr: {lr: 0.5, lr_schedule_type: " +
                       std::string(schedule) + "}\n"),
              "")
        << schedule;
  }
}

TEST_F(KeysWithoutEffectTest, AWordThatNamesAFileIsNoKey) {
  std::ofstream(folder_ / "frame.t=0.5.jpg") << "image";
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  std::vector<std::string> args = {"frame.t=0.5.jpg", "training.epochs=3"};
  const auto overrides = take_overrides(args);
  std::filesystem::current_path(before);
  EXPECT_THAT(args, ElementsAre("frame.t=0.5.jpg"));
  ASSERT_EQ(overrides.size(), 1U);
  EXPECT_EQ(overrides[0].key, "training.epochs");
}

TEST_F(KeysWithoutEffectTest, AWordInNoSectionMayBeTheNameOfAFile) {
  const auto parse = [&](const std::string& word) {
    RecipeArguments command("predict", "", RecipeArguments::Positional::run_or_recipe);
    static_cast<void>(command.parse({word}, recipe_help(registries_)));
    return command.overrides().size();
  };
  EXPECT_THAT([&] { static_cast<void>(parse("frame.t=0.5.jpg")); },
              ThrowsMessage<ConfigError>(Names("frame.t=0.5.jpg", "./frame.t=0.5.jpg")));
  EXPECT_THAT([&] { static_cast<void>(parse("trainig.epochs=3")); },
              ThrowsMessage<ConfigError>(Names("trainig.epochs=3", "training")));
  for (const char* word : {"training.epochs=3", "order.option=1", "methods=[ema]"})
    EXPECT_EQ(parse(word), 1U) << word;
}

}  // namespace
}  // namespace precast::tools
