#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "framework/process/child_process.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_file.h"

namespace precast::tools {
namespace {

using std::filesystem::path;

const std::vector<std::string> kDryRun = {"--dry-run", "--train-samples=1281167", "--json"};
const path kConfigs = path(test::source_dir()) / "configs";

/// The paths of the recipes: the files with a `model` section. Tables and sweeps only refer to
/// recipes.
std::vector<std::string> recipes() {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kConfigs)) {
    if (entry.path().extension() != ".yaml") continue;
    if (test::read_text(entry.path()).find("\nmodel:") != std::string::npos)
      all.push_back(entry.path().lexically_relative(kConfigs).string());
  }
  std::ranges::sort(all);
  return all;
}

/// Runs `precast train RECIPE more...` without GPUs. A dry run then accepts any number of ranks.
ChildResult train(const std::string& recipe, const std::vector<std::string>& more) {
  std::vector<std::string> all = {"/usr/bin/env",
                                  "CUDA_VISIBLE_DEVICES=", test::bin_dir() + "/precast", "train",
                                  (kConfigs / recipe).string()};
  all.insert(all.end(), more.begin(), more.end());
  return run_child(all, std::chrono::minutes(5));
}

class ConfigsTest : public ::testing::TestWithParam<std::string> {
 protected:
  ConfigsTest() { test::write_bytes(data(), test::golden_beton("img_prop_nette_w1")); }
  [[nodiscard]] path data() const { return folder_ / "d.beton"; }

  test::TemporaryFolder folder_;
};

TEST_P(ConfigsTest, PassesADryRun) {
  const ChildResult run = train(GetParam(), kDryRun);
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_GT(nlohmann::json::parse(run.output).at("steps_per_epoch").get<int>(), 0);
}

/// Trains three steps on 24 images at 32 px.
TEST_P(ConfigsTest, TrainsThreeStepsOnTinyData) {
  const ChildResult run = train(GetParam(), {"--data.train_dataset=" + data().string(),
                                             "--data.val_dataset=" + data().string(),
                                             "--data.in_memory=1",
                                             "--data.num_workers=1",
                                             "--training.distributed=0",
                                             "--dist.world_size=1",
                                             "--training.batch_size=8",
                                             "--training.global_batch_size=0",
                                             "--training.epochs=1",
                                             "--training.device=cpu",
                                             "--training.precision=fp32",
                                             "--resolution.min_res=32",
                                             "--resolution.max_res=32",
                                             "--resolution.start_ramp=0",
                                             "--resolution.end_ramp=0",
                                             "--validation.resolution=32",
                                             "--validation.batch_size=24",
                                             "--lr.lr=0.001",
                                             "--lr.warmup_epochs=0",
                                             "--warn-unread",
                                             "--logging.every=1",
                                             "--logging.folder=" + (folder_ / "runs").string(),
                                             "--logging.run_id=r"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  std::ifstream log(folder_ / "runs/r/log");
  int steps = 0;
  for (std::string line; std::getline(log, line);)
    steps += nlohmann::json::parse(line).contains("loss") ? 1 : 0;
  EXPECT_EQ(steps, 3);
}

INSTANTIATE_TEST_SUITE_P(Recipes, ConfigsTest, ::testing::ValuesIn(recipes()),
                         [](const auto& file) {
                           std::string name = file.param;
                           std::ranges::replace_if(
                               name, [](char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

/// The options that a pipeline gives to an item; empty if it gives none.
nlohmann::json options_of(const nlohmann::json& pipeline, const std::string& item) {
  for (const auto& step : pipeline.at("steps")) {
    if (step.is_object() && step.contains(item)) return step.at(item);
  }
  return nlohmann::json::object();
}

/// The filter of the item `resize`, or its default.
std::string filter_of(const nlohmann::json& pipeline) {
  return options_of(pipeline, "resize").value("filter", "area");
}

TEST(ConfigFiltersTest, ImagesAreResizedAsInTheSources) {
  const struct {
    const char* recipe;
    /// `area` as in FFCV, `antialias` as in Pillow.
    const char* filter;
  } sources[] = {{"rn50_88_epochs", "area"},       {"rn50_composer_mild", "area"},
                 {"rn50_composer_medium", "area"}, {"rn50_composer_hot", "antialias"},
                 {"rn50_rsb_a1", "antialias"},     {"rn50_rsb_a2", "antialias"},
                 {"rn50_rsb_a3", "antialias"},     {"rn50_torchvision_v2", "antialias"}};
  for (const auto& source : sources) {
    const ChildResult run = train(std::string("imagenet/") + source.recipe + ".yaml", kDryRun);
    ASSERT_EQ(run.exit_code, 0) << run.errors;
    const auto pipeline = nlohmann::json::parse(run.output).at("pipeline");
    EXPECT_EQ(filter_of(pipeline.at("train")), source.filter) << source.recipe;
    EXPECT_EQ(filter_of(pipeline.at("val")), source.filter) << source.recipe;
  }
}

TEST(ConfigAugmentationsTest, ImagesAreMovedWithTheInterpolationOfTheSources) {
  const nlohmann::json black = {0, 0, 0}, mean_colour = {124, 116, 104};
  const struct {
    const char *recipe, *transform;
    const nlohmann::json& fill;
  } sources[] = {{"rn50_torchvision_v2", "trivial_augment", black},
                 {"rn50_rsb_a1", "rand_augment", mean_colour},
                 {"rn50_rsb_a2", "rand_augment", mean_colour},
                 {"rn50_rsb_a3", "rand_augment", mean_colour}};
  for (const auto& source : sources) {
    const ChildResult run = train(std::string("imagenet/") + source.recipe + ".yaml", kDryRun);
    ASSERT_EQ(run.exit_code, 0) << run.errors;
    const auto plan = nlohmann::json::parse(run.output);
    const auto options = options_of(plan.at("pipeline").at("train"), source.transform);
    EXPECT_EQ(options.value("interpolation", "nearest"), "bilinear") << source.recipe;
    EXPECT_EQ(options.value("fill", black), source.fill) << source.recipe;
  }
}

}  // namespace
}  // namespace precast::tools
