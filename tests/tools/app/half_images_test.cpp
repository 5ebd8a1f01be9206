// Models that precast tests before the first step (here `layers`), on batches of fp16 or bf16
// images. On a GPU, such batches are the default.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/process/child_process.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/bytes.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/small_network.h"

namespace precast::tools {
namespace {

using test::Names;

/// Runs commands on 24 images, for the small network.
class HalfImagesTest : public ::testing::Test {
 protected:
  HalfImagesTest() {
    test::write_bytes(folder_ / "d.beton", test::golden_beton("img_prop_nette_w1"));
  }
  /// @param type of the images that the pipelines deliver: f16, bf16.
  [[nodiscard]] ChildResult train(const std::string& type,
                                  const std::vector<std::string>& more) const {
    const std::string file = folder_ / "d.beton";
    const std::string steps = "[whole_image, normalize, convert: {type: " + type + "}]";
    std::vector<std::string> all = {"/usr/bin/env",
                                    "CUDA_VISIBLE_DEVICES=",
                                    test::bin_dir() + "/precast",
                                    "train",
                                    "--data.train_dataset=" + file,
                                    "--data.val_dataset=" + file,
                                    "--pipeline.train=" + steps,
                                    "--pipeline.val=" + steps,
                                    "--training.batch_size=8"};
    for (const auto& options : {test::short_run(folder_ / "runs"), test::small_network(), more})
      all.insert(all.end(), options.begin(), options.end());
    return run_child(all, std::chrono::minutes(3));
  }
  [[nodiscard]] ChildResult with_run(const std::string& command, const std::string& option) const {
    return run_child({test::bin_dir() + "/precast", command, folder_ / "runs/r", option},
                     std::chrono::minutes(3));
  }

  test::TemporaryFolder folder_;
};

TEST_F(HalfImagesTest, AModelTrainsEvaluatesAndPredictsInTheirPrecision) {
  const ChildResult trained =
      train("bf16", {"--training.device=cpu", "--training.precision=bf16", "--json"});
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const ChildResult evaluated = with_run("eval", "--json");
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.errors;
  EXPECT_EQ(nlohmann::json::parse(evaluated.output).at("val_loss"),
            nlohmann::json::parse(trained.output).at("val_loss"));
  const ChildResult predicted = with_run("predict", "--json");
  ASSERT_EQ(predicted.exit_code, 0) << predicted.errors;
  EXPECT_EQ(test::occurrences(predicted.output, "\n"), 24);
}

TEST_F(HalfImagesTest, InFp32TheyAreStillRefusedBeforeTheFirstStep) {
  const ChildResult refused = train("bf16", {"--training.device=cpu"});
  EXPECT_EQ(refused.exit_code, 2) << refused.errors;
  EXPECT_THAT(refused.errors, Names("model.arch", "'layers'"));
}

TEST_F(HalfImagesTest, ADryRunForAGpuUsesFp32) {
  const ChildResult fits = train("f16", {"--training.device=cuda", "--dry-run", "--json"});
  ASSERT_EQ(fits.exit_code, 0) << fits.errors;
  EXPECT_EQ(nlohmann::json::parse(fits.output).at("precision"), "fp16");
  // fp32 weights do not match fp16 images on a GPU either.
  const ChildResult refused =
      train("f16", {"--training.device=cuda", "--dry-run", "--training.precision=fp32"});
  EXPECT_EQ(refused.exit_code, 2) << refused.errors;
  EXPECT_THAT(refused.errors, Names("model.arch", "'layers'"));
}

}  // namespace
}  // namespace precast::tools
