// `precast train --dry-run` of runs that would not start, or that would differ from their recipe.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/process/child_process.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/bytes.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace precast::tools {
namespace {

using test::Names;
using ::testing::IsEmpty;

/// Dry runs on 24 images.
class DryRunTest : public ::testing::Test {
 protected:
  DryRunTest() { test::write_bytes(folder_ / "d.beton", test::golden_beton("img_prop_nette_w1")); }
  [[nodiscard]] ChildResult dry_run(std::vector<std::string> keys) const {
    keys.emplace_back("--dry-run");
    return train(keys);
  }
  [[nodiscard]] ChildResult train(const std::vector<std::string>& keys) const {
    const std::string data = folder_ / "d.beton";
    std::vector<std::string> all = {test::bin_dir() + "/precast",
                                    "train",
                                    "--json",
                                    "--data.train_dataset=" + data,
                                    "--data.val_dataset=" + data,
                                    "--training.batch_size=8",
                                    "--training.device=cpu"};
    all.insert(all.end(), keys.begin(), keys.end());
    return run_child(all, std::chrono::minutes(3));
  }

  test::TemporaryFolder folder_;
};

TEST_F(DryRunTest, ABatchLargerThanTheDatasetIsAWarning) {
  EXPECT_THAT(dry_run({}).errors, IsEmpty());
  const ChildResult run = dry_run({"--training.batch_size=25"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.errors, Names("training.batch_size", 24, 25));
}

TEST_F(DryRunTest, TheRanksAreThoseThatTheCommandStarts) {
  const ChildResult run = dry_run({"--dist.nproc=2"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const auto plan = nlohmann::json::parse(run.output);
  EXPECT_EQ(plan.at("world_size"), 2);
  EXPECT_EQ(plan.at("global_batch_size"), 16);
}

TEST_F(DryRunTest, TheRingIsChecked) {
  // No ring has the batches of several ranks.
  const ChildResult run = dry_run({"--ring=none", "--dist.nproc=2"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, Names("warning", "--ring", "'none'", 2));
  const ChildResult outside = dry_run(
      {"--ring=none", "--data.train_dataset=zmq://127.0.0.1:9", "--data.batches_per_epoch=3"});
  EXPECT_EQ(outside.exit_code, 2);
  EXPECT_THAT(outside.errors, Names("data.train_dataset", "--ring", "zmq://127.0.0.1:9"));
}

TEST_F(DryRunTest, ItsOptionsAreErrorsInATraining) {
  for (const std::string option : {"--train-samples=100", "--per-step"}) {
    const ChildResult run =
        train({option, "--logging.folder=" + (folder_ / "runs").string(), "--training.epochs=1"});
    EXPECT_EQ(run.exit_code, 2) << option;
    EXPECT_THAT(run.errors, Names(option.substr(0, option.find('=')), "--dry-run"));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "runs")) << option;
  }
}

TEST_F(DryRunTest, WeightsAndFrozenLayersAreChecked) {
  EXPECT_EQ(dry_run({"--training.freeze=[conv1]"}).exit_code, 0);
  const ChildResult freeze = dry_run({"--training.freeze=[layr1]"});
  EXPECT_EQ(freeze.exit_code, 2);
  EXPECT_THAT(freeze.errors, Names("training.freeze", "layr1"));
  const std::string absent = folder_ / "absent.pt";
  const ChildResult weights = dry_run({"--model.weights=" + absent});
  EXPECT_EQ(weights.exit_code, 5);
  EXPECT_THAT(weights.errors, Names(absent));
}

}  // namespace
}  // namespace precast::tools
