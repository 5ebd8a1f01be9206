#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tools/app/recipe.h"
#include "tools/cli/recipe_arguments.h"
#include "tools/cli/recipe_file.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;
using test::Names;

class RecordedConfigTest : public ::testing::Test {
 protected:
  std::string recipe_file(const std::string& text) {
    std::ofstream(folder_ / "r.yaml") << text;
    return folder_ / "r.yaml";
  }
  std::string record(const ordered_json& resolved) {
    std::ofstream(folder_ / "params.json") << resolved.dump(2);
    return folder_ / "params.json";
  }
  Recipe load(const std::string& path, std::vector<std::string> args = {}) {
    return load_recipe(path, take_overrides(args), registries_);
  }
  /// Expects that the configuration recorded by a run of the recipe has the same values when it is
  /// read back.
  void expect_same_again(const std::string& path) {
    const ordered_json first = load(path).resolved;
    EXPECT_EQ(load(record(first)).resolved, first) << path;
  }

  test::TemporaryFolder folder_;
  Registries registries_ = make_registries();
};

TEST_F(RecordedConfigTest, EveryRecipeOfTheProjectIsReadBackFromItsRecord) {
  int found = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(test::source_dir() + "/configs")) {
    if (entry.path().parent_path().filename() == "sweeps") continue;
    if (entry.path().filename() == "table.yaml" || entry.path().extension() != ".yaml") continue;
    expect_same_again(entry.path());
    ++found;
  }
  EXPECT_GE(found, 15);
}

TEST_F(RecordedConfigTest, ChosenPartsMethodsAndPipelinesAreReadBack) {
  const char* const recipes[] = {
      "",
      "training: {label_smoothing: 0}\n",
      "training: {label_smoothing: 0.2, use_blurpool: 1, channels_last: false}\n",
      ("training: {loss: bce, optimizer: lamb, epochs: 4}\n"
       "lr: {lr_schedule_type: cosine, warmup_epochs: 1}\n"),
      "loss: {label_smoothing: 0}\n",
      "loss: {label_smoothing: 0.3}\n",
      "methods: [label_smoothing: {smoothing: 0.3}, blurpool, ema: {decay: 0.9}]\n",
      "methods: [ema, label_smoothing, channels_last]\n",
      "methods: [sam, progressive_resize]\n",
      "methods: [blurpool, channels_last, ema]\n",
      "methods: [progressive_resize: {min_res: 64, max_res: 96, start_ramp: 2, end_ramp: 4}]\n",
      "data: {order: quasi_random, shuffle_window_mb: 16, inputs: image}\n",
      "data: {in_memory: 0, cache_mb: 64, direct_io: 1}\n",
      "validation: {metrics: [top_k: {k: 3}]}\nmodel: {num_classes: 7}\n",
      ("pipeline: {val: [center_crop: {ratio: 0.9}, "
       "normalize: {mean: [1, 2, 3], std: [4, 5, 6]}]}\n"),
  };
  for (const char* text : recipes) expect_same_again(recipe_file(text));
}

TEST_F(RecordedConfigTest, OverridesOfKeysThatAddMethodsApply) {
  const std::string path =
      record(load(recipe_file("training: {use_blurpool: 1, label_smoothing: 0.2}\n")).resolved);
  const Recipe changed = load(path, {"--training.use_blurpool=0", "--resolution.max_res=200"});
  const auto& methods = changed.resolved.at("methods");
  ASSERT_EQ(methods.size(), 3U);
  EXPECT_EQ(methods[1].at("progressive_resize").at("max_res"), 200);
  EXPECT_EQ(methods[2].at("label_smoothing").at("smoothing"), 0.2);
}

TEST_F(RecordedConfigTest, TheNameOfTheRunAndItsResumeAreLeftOutUnlessTheyAreGiven) {
  const std::string path = record(load(recipe_file("logging: {run_id: a, every: 5}\n"
                                                   "checkpoint: {resume: force, keep_last: 3}\n"))
                                      .resolved);
  const Recipe again = load(path);
  EXPECT_EQ(again.config.logging.run_id, "");
  EXPECT_EQ(again.config.checkpoint.resume, "never");
  EXPECT_EQ(again.config.logging.every, 5);
  EXPECT_EQ(again.config.checkpoint.keep_last, 3);
  const Recipe given = load(path, {"--logging.run_id=b", "--checkpoint.resume=auto"});
  EXPECT_EQ(given.resolved.at("logging.run_id"), "b");
  EXPECT_EQ(given.resolved.at("checkpoint.resume"), "auto");
}

TEST_F(RecordedConfigTest, KeysOfOtherVersionsAreLeftOut) {
  ordered_json resolved = load(recipe_file("lr: {lr: 0.25}\n")).resolved;
  resolved["lr.of_another_version"] = 3;
  resolved["another.section"] = "x";
  // Options of another optimiser, and the old name of data.inputs.
  resolved["optimizer.beta1"] = 0.8;
  resolved["data.image_field"] = "";
  resolved.erase("data.inputs");
  testing::internal::CaptureStderr();
  const Recipe again = load(record(resolved));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              Names(folder_ / "params.json", "lr.of_another_version", "another.section"));
  EXPECT_EQ(again.config.lr.lr, 0.25);
  EXPECT_TRUE(again.config.data.inputs.empty());
}

TEST_F(RecordedConfigTest, InvalidValuesAreNamedWithTheirLocation) {
  ordered_json resolved = load(recipe_file("")).resolved;
  resolved["training.batch_size"] = -1;
  try {
    static_cast<void>(load(record(resolved)));
    ADD_FAILURE();
  } catch (const ConfigError& error) {
    EXPECT_THAT(std::string(error.what()), Names("training.batch_size", -1));
    EXPECT_THAT(error.what(), testing::HasSubstr("params.json:"));
  }
}

}  // namespace
}  // namespace precast::tools
