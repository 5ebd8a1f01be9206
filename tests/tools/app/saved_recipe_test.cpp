// Uses the params.json of a run as a recipe.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "framework/core/error.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tools/app/recipe.h"
#include "tools/cli/recipe_arguments.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

class SavedRecipeTest : public ::testing::Test {
 protected:
  Recipe load(const std::string& text, std::vector<std::string> args = {}) {
    std::ofstream(folder_ / "r.yaml") << text;
    return load_recipe(folder_ / "r.yaml", take_overrides(args), registries_);
  }
  /// Loads the params.json that a run of `recipe` saves.
  Recipe load_saved(const Recipe& recipe, std::vector<std::string> args = {}) {
    std::ofstream(folder_ / "params.json") << recipe.resolved.dump(2) << '\n';
    return load_recipe(folder_ / "params.json", take_overrides(args), registries_);
  }
  static std::vector<std::string> names(const Recipe& recipe) {
    std::vector<std::string> all;
    for (const NamedMethod& method : recipe.methods) all.push_back(method.name);
    return all;
  }

  test::TemporaryFolder folder_;
  Registries registries_ = make_registries();
};

TEST_F(SavedRecipeTest, EveryRecipeOfTheProjectBecomesTheSameConfiguration) {
  int found = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(test::source_dir() + "/configs")) {
    if (entry.path().parent_path().filename() == "sweeps") continue;
    if (entry.path().filename() == "table.yaml") continue;
    if (entry.path().extension() != ".yaml") continue;
    const Recipe recipe = load_recipe(entry.path(), {}, registries_);
    const Recipe saved = load_saved(recipe);
    EXPECT_EQ(saved.resolved, recipe.resolved)
        << entry.path() << ordered_json::diff(recipe.resolved, saved.resolved).dump();
    EXPECT_EQ(names(saved), names(recipe)) << entry.path();
    ++found;
  }
  EXPECT_GE(found, 15);
}

TEST_F(SavedRecipeTest, KeysThatShadowMethodsAndOptionsOfPartsAreKept) {
  for (const char* text : {"methods: [ema, progressive_resize: {min_res: 64, max_res: 96}]\n",
                           // The option of the loss replaces the default method.
                           "training: {loss: cross_entropy}\nloss: {label_smoothing: 0}\n",
                           "training: {label_smoothing: 0, channels_last: false}\n",
                           "data: {order: quasi_random, shuffle_window_mb: 64}\n",
                           "data: {order: weighted, weights: [1, 2], filter: 'label == \"a b\"'}\n",
                           "training: {optimizer: adamw}\noptimizer: {beta2: 0.95}\n",
                           "lr: {lr_schedule_type: cosine, warmup_epochs: 3}\n",
                           "pipeline: {train: [random_resized_crop: {scale: [0.5, 1]}, cutout: "
                           "{crop_size: 4}], val: [whole_image]}\n",
                           "validation: {metrics: [top_k: {k: 3}]}\nlogging: {folder: '007'}\n"}) {
    const Recipe recipe = load(text);
    const Recipe saved = load_saved(recipe);
    EXPECT_EQ(saved.resolved, recipe.resolved)
        << text << ordered_json::diff(recipe.resolved, saved.resolved).dump();
  }
}

TEST_F(SavedRecipeTest, KeysOfTheCommandLineChangeItAndItsMethods) {
  const Recipe recipe = load("training: {use_blurpool: 1, label_smoothing: 0.1, epochs: 20}\n");
  const Recipe changed = load_saved(
      recipe, {"--training.use_blurpool=0", "--resolution.max_res=192", "--resolution.end_ramp=9",
               "--training.label_smoothing=0.2", "--lr.lr=0.25"});
  EXPECT_EQ(names(changed),
            (std::vector<std::string>{"channels_last", "progressive_resize", "label_smoothing"}));
  EXPECT_EQ(changed.config.lr.lr, 0.25);
  EXPECT_EQ(changed.config.training.epochs, 20);
  const ordered_json& methods = changed.resolved.at("methods");
  EXPECT_EQ(methods.at(1).at("progressive_resize").at("min_res"), 160);
  EXPECT_EQ(methods.at(1).at("progressive_resize").at("max_res"), 192);
  EXPECT_EQ(methods.at(1).at("progressive_resize").at("end_ramp"), 9);
  EXPECT_EQ(methods.at(2).at("label_smoothing").at("smoothing"), 0.2);
  const Recipe added = load_saved(changed, {"--training.use_blurpool=1"});
  EXPECT_EQ(names(added).front(), "blurpool");
}

TEST_F(SavedRecipeTest, AMistakeIsNamedWithItsLocation) {
  std::ofstream(folder_ / "params.json") << "{\"lr.lr\": \"fast\",\n \"lr.lrr\": 1}\n";
  try {
    (void)load_recipe(folder_ / "params.json", {}, registries_);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), test::Names("params.json:1:", "lr.lr", "'fast'"));
  }
}

}  // namespace
}  // namespace precast::tools
