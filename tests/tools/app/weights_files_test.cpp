#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/core/archive/checkpoint_folder.h"
#include "framework/core/archive/weight_names.h"
#include "framework/core/archive/weights_file.h"
#include "framework/core/archive/weights_spec.h"
#include "framework/process/child_process.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace precast::tools {
namespace {

using test::Names;

/// Starts the programs as a user does: a run with BlurPool on nine images of three classes.
class WeightsFilesTest : public ::testing::Test {
 protected:
  WeightsFilesTest() {
    test::make_class_tree(folder_ / "tree");
    write_dataset("d.beton");
    write_dataset("unnamed.beton", {"--no-checksums"});
    std::filesystem::rename(folder_ / "tree/dog", folder_ / "tree/fox");
    write_dataset("other.beton");
  }
  void write_dataset(const std::string& name, const std::vector<std::string>& options = {}) const {
    std::vector<std::string> all = {test::bin_dir() + "/precast", "write", folder_ / "tree",
                                    folder_ / name};
    all.insert(all.end(), options.begin(), options.end());
    const ChildResult written = run_child(all, std::chrono::minutes(1));
    EXPECT_EQ(written.exit_code, 0) << written.errors;
  }
  /// Runs `precast args[0] common... args[1...]`.
  ChildResult precast(const std::vector<std::string>& args,
                      const std::string& data = "d.beton") const {
    std::vector<std::string> all = {test::bin_dir() + "/precast",
                                    args[0],
                                    "--data.train_dataset=" + (folder_ / data).string(),
                                    "--data.val_dataset=" + (folder_ / data).string(),
                                    "--training.batch_size=4",
                                    "--resolution.min_res=32",
                                    "--resolution.max_res=32",
                                    "--validation.resolution=40",
                                    "--training.epochs=1",
                                    "--lr.lr=0.001",
                                    "--logging.folder=" + (folder_ / "runs").string(),
                                    "--training.device=cpu"};
    all.insert(all.end(), args.begin() + 1, args.end());
    return run_child(all, std::chrono::minutes(3));
  }
  [[nodiscard]] std::string run(const std::string& file) const {
    return (folder_ / "runs/r" / file).string();
  }

  test::TemporaryFolder folder_;
};

TEST_F(WeightsFilesTest, EveryFileOfABlurPoolRunRecordsItAndOtherNetworksRejectIt) {
  const ChildResult trained = precast({"train", "--logging.run_id=r", "--training.use_blurpool=1"});
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const std::string in_checkpoint = "checkpoints/ckpt-0000000002/model.safetensors";
  const WeightsFile checkpoint = load_weights(run(in_checkpoint));
  const auto spec = spec_of(checkpoint);
  ASSERT_TRUE(spec);
  EXPECT_TRUE(spec->blurpool);
  EXPECT_EQ(spec->class_names, (std::vector<std::string>{"cat", "cat-like", "dog"}));
  EXPECT_EQ(spec->resolution_px, 40);
  const std::vector<std::string> files = {"final_weights.pt", "final_weights.safetensors",
                                          in_checkpoint};
  for (const std::string& name : files) {
    const WeightsFile file = load_weights(run(name));
    EXPECT_EQ(spec_of(file), spec);
    EXPECT_EQ(file.find("layer2.0.conv1.weight"), nullptr);
    EXPECT_NE(file.find("layer2.0.conv1.conv.weight"), nullptr);
    EXPECT_NE(file.find("layer2.0.conv1.blur_filter"), nullptr);
  }

  const std::string logits = (folder_ / "logits.npy").string();
  for (const std::string& file :
       {run("final_weights.pt"), checkpoint.path().string(), run("final_weights.safetensors")}) {
    const std::string weights = "--model.weights=" + file;
    const std::vector<std::vector<std::string>> commands = {
        {"eval", weights},
        {"predict", weights, "-o", logits},
        {"train", weights, "--logging.run_id=refused"}};
    for (std::vector<std::string> command : commands) {
      const ChildResult refused = precast(command);
      EXPECT_EQ(refused.exit_code, 4) << command[0];
      EXPECT_THAT(refused.errors, Names(file, "blurpool", "true", "false"));
      if (command[0] == "train") continue;
      command.push_back("--training.use_blurpool=1");
      EXPECT_EQ(precast(command).exit_code, 0) << command[0];
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/refused"));
  const ChildResult resumed = precast({"train", "--logging.run_id=r", "--checkpoint.resume=auto"});
  EXPECT_EQ(resumed.exit_code, 4);
}

TEST_F(WeightsFilesTest, ABlurPoolRunContinuesFromItsCheckpointAndFromOneOfAnOlderVersion) {
  const std::vector<std::string> train = {"train", "--training.use_blurpool=1"};
  const auto continued = [&](const std::string& id) {
    std::vector<std::string> command = train;
    command.insert(command.end(),
                   {"--logging.run_id=" + id, "--training.epochs=2", "--checkpoint.resume=force"});
    const ChildResult result = precast(command);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return load_weights(folder_ / "runs" / id / "final_weights.safetensors");
  };
  std::vector<std::string> command = train;
  command.emplace_back("--logging.run_id=r");
  ASSERT_EQ(precast(command).exit_code, 0);
  std::filesystem::copy(folder_ / "runs/r", folder_ / "runs/older",
                        std::filesystem::copy_options::recursive);
  // Older versions wrote torchvision's names.
  const std::filesystem::path checkpoint = run("checkpoints/ckpt-0000000002");
  const WeightsFile model = load_weights(checkpoint / "model.safetensors");
  const TorchvisionNames names = torchvision_names(model.records(), "test");
  ASSERT_GT(names.renamed, 0U);
  std::filesystem::remove_all(folder_ / "runs/older/checkpoints");
  CheckpointWriter writer(folder_ / "runs/older/checkpoints", 2, /*expected_bytes=*/0);
  for (const auto& file : std::filesystem::directory_iterator(checkpoint)) {
    const std::string name = file.path().filename();
    if (name == "manifest.json") continue;
    if (name == "model.safetensors")
      save_weights(writer.path(name), names.records, weights_metadata(*spec_of(model)));
    else
      std::filesystem::copy_file(file.path(), writer.path(name));
    writer.add_written(name);
  }
  writer.commit();
  const WeightsFile ours = continued("r"), older = continued("older");
  ASSERT_EQ(ours.records().size(), older.records().size());
  for (const TensorRecord& record : ours.records())
    EXPECT_TRUE(std::ranges::equal(older.find(record.name)->bytes, record.bytes)) << record.name;
}

TEST_F(WeightsFilesTest, ClassesOfTheDataAreComparedByName) {
  const ChildResult trained = precast({"train", "--logging.run_id=r"});
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const std::string weights = "--model.weights=" + run("final_weights.pt");
  EXPECT_EQ(precast({"eval", weights}).exit_code, 0);
  const ChildResult refused = precast({"eval", weights}, "other.beton");
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_THAT(refused.errors, Names(run("final_weights.pt"), 2, "'dog'", "'fox'"));
  const ChildResult loaded = precast({"eval", weights, "--model.weights_check=off"}, "other.beton");
  EXPECT_EQ(loaded.exit_code, 0);
  EXPECT_THAT(loaded.errors, Names("warning", "'dog'", "'fox'"));
  const ChildResult tuned = precast({"train", weights, "--logging.run_id=tuned"}, "other.beton");
  EXPECT_EQ(tuned.exit_code, 0);
  EXPECT_THAT(tuned.errors, Names("warning", "'dog'", "'fox'"));
  const ChildResult count = precast({"eval", weights, "--model.num_classes=5"});
  EXPECT_EQ(count.exit_code, 4);
  EXPECT_THAT(count.errors, Names(3, 5));
  const auto unnamed =
      Names("warning", (folder_ / "unnamed.beton").string(), run("final_weights.pt"));
  for (const std::string command : {"eval", "predict"}) {
    const ChildResult not_compared = precast({command, weights}, "unnamed.beton");
    EXPECT_EQ(not_compared.exit_code, 0) << not_compared.errors;
    EXPECT_THAT(not_compared.errors, unnamed) << command;
    EXPECT_THAT(precast({command, weights}).errors, testing::Not(unnamed)) << command;
  }
  // In training, the last layer learns the labels of the dataset, whatever their names.
  EXPECT_THAT(precast({"train", weights, "--dry-run"}, "unnamed.beton").errors,
              testing::Not(unnamed));
  // Photos have no labels.
  const ChildResult photos = precast(
      {"predict", (folder_ / "runs/r").string(), weights, (folder_ / "tree/cat/b.jpg").string()},
      "unnamed.beton");
  EXPECT_EQ(photos.exit_code, 0) << photos.errors;
  EXPECT_THAT(photos.errors, testing::Not(unnamed));
}

TEST_F(WeightsFilesTest, WeightsWithoutASpecAreRefusedForAnotherNumberOfClasses) {
  const auto refused = [&](std::vector<std::string> command, int classes, const std::string& data) {
    const std::string file = folder_ / ("head" + std::to_string(classes) + ".safetensors");
    const std::vector<std::byte> bytes(sizeof(float) * static_cast<std::size_t>(classes));
    const std::vector<TensorRecord> head = {{"fc.bias", DType::f32, {classes}, bytes}};
    save_weights(file, head, {});
    command.push_back("--model.weights=" + file);
    const ChildResult result = precast(command, data);
    EXPECT_EQ(result.exit_code, 4) << command[0] << result.errors;
    EXPECT_THAT(result.errors, Names(file, (folder_ / data).string(), 3, classes));
  };
  for (const int classes : {2, 20}) {
    refused({"eval"}, classes, "d.beton");
    refused({"predict"}, classes, "d.beton");
    refused({"train", "--training.eval_only=1", "--dry-run"}, classes, "d.beton");
  }
  refused({"eval"}, 2, "unnamed.beton");
}

}  // namespace
}  // namespace precast::tools
