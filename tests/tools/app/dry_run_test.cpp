// What `precast train --dry-run` rejects, warns of and shows.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "framework/process/child_process.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/support/bytes.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/small_network.h"

namespace precast::tools {
namespace {

using test::Names;
using ::testing::IsEmpty;

constexpr const char* kLinearNetwork = "--model.params={image_size: 32, layers: [flatten, linear]}";

/// Dry runs on 24 images.
class DryRunTest : public ::testing::Test {
 protected:
  DryRunTest() { test::write_bytes(folder_ / "d.beton", test::golden_beton("img_prop_nette_w1")); }
  [[nodiscard]] ChildResult dry_run(std::vector<std::string> keys) const {
    keys.emplace_back("--dry-run");
    return train(keys);
  }
  [[nodiscard]] ChildResult train(std::vector<std::string> keys) const {
    keys.emplace_back("--json");
    return train_as_text(std::move(keys));
  }
  [[nodiscard]] ChildResult train_as_text(std::vector<std::string> keys) const {
    keys.insert(keys.begin(), {"--data.val_dataset=" + data(), "--training.batch_size=8",
                               "--training.device=cpu"});
    return precast(keys);
  }
  /// Runs `precast train --data.train_dataset=FILE options...` without GPUs.
  [[nodiscard]] ChildResult precast(const std::vector<std::string>& options) const {
    std::vector<std::string> all = {"/usr/bin/env",
                                    "CUDA_VISIBLE_DEVICES=", test::bin_dir() + "/precast", "train",
                                    "--data.train_dataset=" + data()};
    all.insert(all.end(), options.begin(), options.end());
    return run_child(all, std::chrono::minutes(3));
  }
  [[nodiscard]] std::string data() const { return folder_ / "d.beton"; }

  test::TemporaryFolder folder_;
};

TEST_F(DryRunTest, ABatchLargerThanTheDatasetIsAnErrorAfterThePlan) {
  const ChildResult fits = dry_run({"--training.batch_size=24"});
  EXPECT_EQ(fits.exit_code, 0);
  EXPECT_THAT(fits.errors, IsEmpty());
  const ChildResult run = dry_run({"--training.batch_size=25"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.errors, Names("training.batch_size", 24, data(), 25));
  EXPECT_EQ(nlohmann::json::parse(run.output).at("steps_per_epoch"), 0);
  const ChildResult assumed = dry_run({"--training.batch_size=25", "--train-samples=20"});
  EXPECT_EQ(assumed.exit_code, 2);
  EXPECT_THAT(assumed.errors, Names("training.batch_size", 20, 25));
}

TEST_F(DryRunTest, ANormalisationInOnlyOneOfThePipelinesIsAWarning) {
  const std::string train_key = "--pipeline.train=", val_key = "--pipeline.val=";
  const std::string raw = "[whole_image, convert: {type: f32}]";
  for (const std::string& key : {train_key, val_key}) {
    const bool trains = key == train_key;
    const ChildResult run = dry_run({key + raw});
    ASSERT_EQ(run.exit_code, 0) << run.errors;
    EXPECT_THAT(run.errors,
                Names("warning", "pipeline.train", "pipeline.val", "none", "123.675", "57.375"));
    const auto pipeline = nlohmann::json::parse(run.output).at("pipeline");
    EXPECT_FALSE(pipeline.at(trains ? "train" : "val").contains("mean"));
    EXPECT_TRUE(pipeline.at(trains ? "val" : "train").contains("mean"));
  }
  const std::string rounded = "normalize: {mean: [123.675, 116.28, 103.53], std: [58.395, 57.12, ";
  const ChildResult other = dry_run({train_key + "[whole_image, " + rounded + "50]}]"});
  EXPECT_THAT(other.errors, Names("warning", "pipeline.train", "pipeline.val", "50]", "57.375]"));
  for (const std::vector<std::string>& same :
       {std::vector<std::string>{train_key + raw, val_key + raw},
        {train_key + "[whole_image, " + rounded + "57.375]}]"},
        {train_key + "[whole_image, convert: {type: f32}, normalize]"}}) {
    const ChildResult run = dry_run(same);
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_THAT(run.errors, IsEmpty());
  }
}

TEST_F(DryRunTest, ThePlanOfADatasetWithoutImagesShowsNoPipelineAndNoResolution) {
  std::string rows;
  for (int row = 0; row < 24; ++row)
    rows += fmt::format("{{\"x\": [{}, 0.5], \"label\": {}}}\n", row, row % 2);
  test::write_bytes(folder_ / "rows.jsonl", bytes_of(rows));
  const std::string table = folder_ / "rows.beton";
  ASSERT_EQ(run_child({test::bin_dir() + "/precast", "write", folder_ / "rows.jsonl", table},
                      std::chrono::minutes(3))
                .exit_code,
            0);
  const std::vector<std::string> keys = {"--dry-run", "--data.train_dataset=" + table,
                                         "--data.val_dataset=" + table, "--model.arch=layers",
                                         "--model.params={features: 2, layers: [linear]}"};
  const ChildResult run = train(keys);
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_TRUE(nlohmann::json::parse(run.output).at("pipeline").empty()) << run.output;
  const ChildResult text = train_as_text(keys);
  EXPECT_THAT(text.output, testing::Not(testing::HasSubstr("random_resized_crop")));
  EXPECT_THAT(text.output, testing::Not(testing::HasSubstr("resolution ")));
}

TEST_F(DryRunTest, MissingRequiredKeysAreErrors) {
  const ChildResult no_val = precast({"--training.device=cpu", "--dry-run"});
  EXPECT_EQ(no_val.exit_code, 2);
  EXPECT_THAT(no_val.errors, Names("data.val_dataset"));
  const ChildResult unnamed = dry_run({"--checkpoint.resume=auto"});
  EXPECT_EQ(unnamed.exit_code, 2);
  EXPECT_THAT(unnamed.errors, Names("logging.run_id"));
  EXPECT_EQ(dry_run({"--checkpoint.resume=auto", "--logging.run_id=r"}).exit_code, 0);
  const ChildResult evaluates = dry_run({"--training.eval_only=1"});
  EXPECT_EQ(evaluates.exit_code, 2);
  EXPECT_THAT(evaluates.errors, Names("model.weights"));
}

TEST_F(DryRunTest, ThePlanForRanksOnGpusNeedsNoGpu) {
  const ChildResult run =
      dry_run({"--training.device=cuda", "--dist.nproc=3", "--train-samples=100"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(nlohmann::json::parse(run.output).at("world_size"), 3);
}

TEST_F(DryRunTest, ImagesInTheMemoryOfAGpuAreChecked) {
  const std::string key = "--data.in_memory=gpu";
  const ChildResult no_gpu = dry_run({key});
  EXPECT_EQ(no_gpu.exit_code, 2);
  EXPECT_THAT(no_gpu.errors, Names("data.in_memory", "gpu"));
  const ChildResult jpegs = dry_run({key, "--training.device=cuda"});
  EXPECT_EQ(jpegs.exit_code, 2);
  EXPECT_THAT(jpegs.errors, Names("data.in_memory", data(), "raw"));
  const std::string raw = folder_ / "raw.beton";
  test::write_made_beton(raw, {.samples = 24});
  const std::vector<std::string> fits = {
      key, "--training.device=cuda", "--data.train_dataset=" + raw, "--data.val_dataset=" + raw};
  const ChildResult plan = dry_run(fits);
  EXPECT_EQ(plan.exit_code, 0) << plan.errors;
  std::vector<std::string> ring = fits;
  ring.emplace_back("--ring=none");
  const ChildResult shared = dry_run(ring);
  EXPECT_EQ(shared.exit_code, 2);
  EXPECT_THAT(shared.errors, Names("data.in_memory", "gpu"));
  std::vector<std::string> outside = fits;
  outside.insert(outside.end(),
                 {"--data.train_dataset=zmq://127.0.0.1:9", "--data.batches_per_epoch=3"});
  EXPECT_EQ(dry_run(outside).exit_code, 2);
  // The sizes are checked too: the kernel's 32 taps suffice only if images are at most 31 times as
  // large as the result.
  std::vector<std::string> large = fits;
  test::write_made_beton(folder_ / "large.beton", {.samples = 8, .width = 1000, .height = 4});
  large.insert(large.end(), {"--data.val_dataset=" + (folder_ / "large.beton").string(),
                             "--validation.resolution=32"});
  const ChildResult shrunk = dry_run(large);
  EXPECT_EQ(shrunk.exit_code, 2);
  EXPECT_THAT(shrunk.errors, Names("data.in_memory", "992 px", "1000 px", "32 px"));
  std::vector<std::string> verified = fits;
  verified.emplace_back("--data.verify=1");
  const ChildResult twice = dry_run(verified);
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.errors, Names("data.verify", "data.in_memory"));
}

TEST_F(DryRunTest, KeysThatNothingReadsAreListed) {
  EXPECT_EQ(nlohmann::json::parse(dry_run({}).output).at("unread_keys").size(), 0U);
  const ChildResult run = dry_run({"--warn-unread", "--optimizer.beta1=0.8"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const auto unread = nlohmann::json::parse(run.output).at("unread_keys");
  ASSERT_EQ(unread.size(), 1U);
  EXPECT_EQ(unread[0].at("key"), "optimizer.beta1");
  EXPECT_EQ(unread[0].at("place"), "command line");
  EXPECT_THAT(unread[0].at("reason").get<std::string>(), Names("training.optimizer", "adamw"));
  // Keys of published recipes are listed separately, because a grid accepts them in its recipe.
  const ChildResult published =
      dry_run({"--warn-unread", "--training.optimizer=adamw", "--training.momentum=0.9"});
  ASSERT_EQ(published.exit_code, 0) << published.errors;
  EXPECT_THAT(published.errors, Names("training.momentum"));
  const auto plan = nlohmann::json::parse(published.output);
  EXPECT_EQ(plan.at("unread_keys").size(), 0U);
  ASSERT_EQ(plan.at("ignored_keys").size(), 1U);
  EXPECT_EQ(plan.at("ignored_keys")[0].at("key"), "training.momentum");
  EXPECT_EQ(plan.at("ignored_keys")[0].at("place"), "command line");
}

TEST_F(DryRunTest, KeysThatTheNumberOfRanksOrTheImageSizesDisableAreListed) {
  const auto ignored = [&](const std::vector<std::string>& keys) {
    const ChildResult run = dry_run(keys);
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    EXPECT_THAT(run.errors, IsEmpty());
    std::vector<std::string> found;
    const auto plan = nlohmann::json::parse(run.output);
    for (const auto& entry : plan.at("ignored_keys")) {
      EXPECT_EQ(entry.at("place"), "command line");
      found.push_back(entry.at("key"));
    }
    return found;
  };
  using testing::ElementsAre;
  EXPECT_THAT(ignored({"--dist.sync_bn=1", "--dist.world_size=2", "--resolution.end_ramp=1"}),
              ElementsAre("dist.sync_bn", "dist.world_size", "resolution.end_ramp"));
  EXPECT_THAT(ignored({"--dist.sync_bn=1", "--dist.nproc=2", "--resolution.min_res=128",
                       "--resolution.end_ramp=1"}),
              IsEmpty());
  EXPECT_THAT(ignored({"--training.distributed=1", "--dist.world_size=2"}), IsEmpty());
  // The keys that the documents give for one GPU.
  EXPECT_THAT(ignored({"--training.distributed=0", "--dist.world_size=1"}), IsEmpty());
  EXPECT_THAT(ignored({"--training.distributed=1", "--dist.world_size=3", "--dist.nproc=2"}),
              ElementsAre("dist.world_size"));
}

TEST_F(DryRunTest, AnAssumedNumberOfSamplesIsThatOfTheSelectedOnes) {
  const ChildResult run = dry_run({"--train-samples=100", "--data.repeats=3"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(nlohmann::json::parse(run.output).at("steps_per_epoch"), 37);
  for (const std::string key : {"--data.subset=10", "--data.filter=label < 3"}) {
    const ChildResult refused = dry_run({"--train-samples=100", key});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.errors, Names(key.substr(2, key.find('=') - 2), "--train-samples"));
  }
  const std::string producer = "zmq://127.0.0.1:9";
  const ChildResult outside = dry_run(
      {"--train-samples=100", "--data.train_dataset=" + producer, "--data.batches_per_epoch=3"});
  EXPECT_EQ(outside.exit_code, 2);
  EXPECT_THAT(outside.errors, Names("data.train_dataset", "--train-samples", producer));
}

TEST_F(DryRunTest, AnEvaluationShowsWhatItReads) {
  std::vector<std::string> keys = test::short_run(folder_ / "runs");
  keys.insert(keys.end(), {"--model.arch=layers", kLinearNetwork, "--training.epochs=0"});
  ASSERT_EQ(train(keys).exit_code, 0);
  const std::string weights = folder_ / "runs/r/final_weights.safetensors";
  keys.insert(keys.end(), {"--training.eval_only=1", "--model.weights=" + weights, "--dry-run"});
  const ChildResult text = train_as_text(keys);
  ASSERT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_THAT(text.output, Names(weights, "32 px", data(), "top_1", "val_loss", "512 samples"));
  EXPECT_THAT(text.output, testing::Not(testing::HasSubstr("optimiser")));
  EXPECT_THAT(text.output, testing::Not(testing::HasSubstr("random")));
  std::vector<std::string> ring = keys;
  ring.emplace_back("--ring=none");
  const ChildResult refused = train(ring);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, Names("training.eval_only", "--ring"));
}

TEST_F(DryRunTest, TheHighestRateIsThatOfThePlan) {
  const auto plan = [&](const std::string& final_lr) {
    return train_as_text({"--dry-run", "--lr.lr=0.25", "--lr.reference_batch_size=4",
                          "--lr.lr_schedule_type=cosine", "--lr.final_lr=" + final_lr,
                          "--training.epochs=2"});
  };
  const ChildResult high = plan("0.75");
  ASSERT_EQ(high.exit_code, 0) << high.errors;
  EXPECT_THAT(high.errors, Names("lr.lr", "0.5", "0.75"));
  EXPECT_THAT(high.output, testing::HasSubstr("at most 0.75\n"));
  const ChildResult scaled = plan("0");
  ASSERT_EQ(scaled.exit_code, 0) << scaled.errors;
  EXPECT_THAT(scaled.errors, IsEmpty());
  EXPECT_THAT(scaled.output, testing::HasSubstr("at most 0.5 ("));
}

TEST_F(DryRunTest, TheRanksAreThoseThatTheCommandStarts) {
  const ChildResult run = dry_run({"--dist.nproc=2"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const auto plan = nlohmann::json::parse(run.output);
  EXPECT_EQ(plan.at("world_size"), 2);
  EXPECT_EQ(plan.at("global_batch_size"), 16);
}

TEST_F(DryRunTest, TheRingIsChecked) {
  // A ring contains the batches of one rank only.
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
  const ChildResult frozen = dry_run({"--training.freeze=[conv1]"});
  ASSERT_EQ(frozen.exit_code, 0) << frozen.errors;
  EXPECT_EQ(nlohmann::json::parse(frozen.output).at("frozen").dump(), R"(["conv1.weight"])");
  const ChildResult freeze = dry_run({"--training.freeze=[layr1]"});
  EXPECT_EQ(freeze.exit_code, 2);
  EXPECT_THAT(freeze.errors, Names("training.freeze", "layr1"));
  const std::string absent = folder_ / "absent.pt";
  const ChildResult weights = dry_run({"--model.weights=" + absent});
  EXPECT_EQ(weights.exit_code, 5);
  EXPECT_THAT(weights.errors, Names(absent));
}

TEST_F(DryRunTest, LayersAreCheckedWithTheNumberOfClassesOfTheDataset) {
  const auto code = [&](const std::string& layers) {
    const ChildResult run = dry_run({"--model.arch=layers", "--model.params={layers: [" + layers +
                                                                ", global_avg_pool, flatten]}"});
    if (run.exit_code == 0) {
      EXPECT_EQ(nlohmann::json::parse(run.output).at("model").at("num_classes"), 10);
    }
    return run.exit_code;
  };
  EXPECT_EQ(code("conv: {out: 5}, conv: {out: 0, groups: 5}"), 0);
  EXPECT_EQ(code("conv: {out: 4}, conv: {out: 0, groups: 4}"), 2);
  EXPECT_EQ(code("conv: {out: 10}, residual: {layers: [conv: {out: 0}]}"), 0);
  EXPECT_EQ(code("conv: {out: 9}, residual: {layers: [conv: {out: 0}]}"), 2);
}

TEST_F(DryRunTest, AnEvaluationEndsWithTheSameCodeAsItsDryRun) {
  std::vector<std::string> common = test::short_run(folder_ / "runs");
  common.insert(common.end(), {"--model.arch=layers", kLinearNetwork});
  ASSERT_EQ(train(common).exit_code, 0);
  const std::string absent = folder_ / "absent.beton";
  const struct {
    std::string key;
    int code;
  } cases[] = {{"--resolution.min_res=16", 0},
               {"--model.num_classes=30", 4},
               {"--data.train_dataset=" + absent, 0},
               {"--data.val_dataset=" + absent, 5}};
  for (const auto& [key, code] : cases) {
    std::vector<std::string> keys = common;
    keys.insert(keys.end(),
                {"--training.eval_only=1",
                 "--model.weights=" + (folder_ / "runs/r/final_weights.pt").string(), key});
    const ChildResult planned = dry_run(keys);
    EXPECT_EQ(planned.exit_code, code) << key << planned.errors;
    EXPECT_EQ(train(keys).exit_code, code) << key;
  }
}

}  // namespace
}  // namespace precast::tools
