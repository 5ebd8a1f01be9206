#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "framework/process/child_process.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace precast::tools {
namespace {

using std::filesystem::path;

const path kConfigs = path(test::source_dir()) / "configs";

/// The paths of the recipes: the files with a `model` section. Tables and sweeps only refer to
/// recipes.
std::vector<std::string> recipes() {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kConfigs)) {
    if (entry.path().extension() != ".yaml") continue;
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    if (text.find("\nmodel:") != text.npos)
      all.push_back(entry.path().lexically_relative(kConfigs).string());
  }
  std::ranges::sort(all);
  return all;
}

class ConfigsTest : public ::testing::TestWithParam<std::string> {
 protected:
  ConfigsTest() { test::write_bytes(data(), test::golden_beton("img_prop_nette_w1")); }
  [[nodiscard]] path data() const { return folder_ / "d.beton"; }

  /// `precast train RECIPE more...`. Without GPUs, a dry run accepts any number of ranks.
  [[nodiscard]] static ChildResult train(const std::vector<std::string>& more) {
    std::vector<std::string> all = {"/usr/bin/env",
                                    "CUDA_VISIBLE_DEVICES=", test::bin_dir() + "/precast", "train",
                                    (kConfigs / GetParam()).string()};
    all.insert(all.end(), more.begin(), more.end());
    return run_child(all, std::chrono::minutes(5));
  }

  test::TemporaryFolder folder_;
};

TEST_P(ConfigsTest, PassesADryRun) {
  const ChildResult run = train({"--dry-run", "--train-samples=1281167", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_GT(nlohmann::json::parse(run.output).at("steps_per_epoch").get<int>(), 0);
}

/// Trains three steps on 24 images at 32 px.
TEST_P(ConfigsTest, TrainsThreeStepsOnTinyData) {
  const ChildResult run = train({"--data.train_dataset=" + data().string(),
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

}  // namespace
}  // namespace precast::tools
