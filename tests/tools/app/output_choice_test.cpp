// Datasets whose first integer, or first input, is another one than that of the training set.
#include <fmt/format.h>
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
#include "tests/support/temporary_folder.h"
#include "tests/support/text_file.h"

namespace precast::tools {
namespace {

using test::Names;
using ::testing::IsEmpty;

class OutputChoiceTest : public ::testing::Test {
 protected:
  /// Writes a dataset with a column for each format, in which {0} is the row and {1} its parity.
  [[nodiscard]] std::string dataset(const std::string& name, const std::string& row) const {
    std::string rows;
    for (int i = 0; i < 8; ++i)
      rows += fmt::format(fmt::runtime(row), fmt::arg("row", i), fmt::arg("odd", i % 2)) + "\n";
    test::write_bytes(folder_ / (name + ".jsonl"), bytes_of(rows));
    const std::string path = folder_ / (name + ".beton");
    EXPECT_EQ(precast({"write", folder_ / (name + ".jsonl"), path}).exit_code, 0);
    return path;
  }
  [[nodiscard]] ChildResult train(const std::string& train, const std::string& val,
                                  std::vector<std::string> keys) const {
    keys.insert(keys.begin(),
                {"train", "--data.train_dataset=" + train, "--data.val_dataset=" + val,
                 "--model.arch=layers", "--model.params={features: 2, layers: [linear]}",
                 "--training.batch_size=4", "--training.epochs=3", "--training.device=cpu",
                 "--logging.folder=" + std::string(folder_ / "runs"), "--logging.run_id=r"});
    return precast(keys);
  }
  [[nodiscard]] static ChildResult precast(const std::vector<std::string>& args) {
    std::vector<std::string> all = {"/usr/bin/env",
                                    "CUDA_VISIBLE_DEVICES=", test::bin_dir() + "/precast"};
    all.insert(all.end(), args.begin(), args.end());
    return run_child(all, std::chrono::minutes(3));
  }

  test::TemporaryFolder folder_;
  std::string yz_ = dataset("yz", R"({{"x": [{row}, 0.5], "y": {odd}, "z": 1}})");
  std::string zy_ = dataset("zy", R"({{"x": [{row}, 0.5], "z": 1, "y": {odd}}})");
  std::string k_ = dataset("k", R"({{"x": [{row}, 0.5], "k": {odd}}})");
};

TEST_F(OutputChoiceTest, TheSameFieldsInAnotherOrderAreAnErrorUnlessTheRecipeNamesThem) {
  const ChildResult other = train(yz_, zy_, {"--dry-run"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.errors, Names("data.targets", "'y'", "'z'", yz_, zy_));
  for (const char* target : {"--data.targets=[y]", "--data.targets=[z]"})
    EXPECT_EQ(train(yz_, zy_, {"--dry-run", target}).exit_code, 0);
  const std::string ab = dataset("ab", R"({{"a": [{row}, 1], "b": [{row}, 2], "y": {odd}}})");
  const std::string ba = dataset("ba", R"({{"b": [{row}, 2], "a": [{row}, 1], "y": {odd}}})");
  const ChildResult input = train(ab, ba, {"--dry-run"});
  EXPECT_EQ(input.exit_code, 2);
  EXPECT_THAT(input.errors, Names("data.inputs", "'a'", "'b'"));
}

TEST_F(OutputChoiceTest, AFieldOfAnotherNameIsReadWithAWarning) {
  const ChildResult run = train(yz_, k_, {"--dry-run"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, Names("warning", "data.targets", "'y'", "'k'", k_));
  const ChildResult same = train(yz_, yz_, {"--dry-run"});
  EXPECT_THAT(same.errors, IsEmpty());
}

TEST_F(OutputChoiceTest, OutputsOfTheSameFieldMayHaveDifferentNames) {
  const ChildResult run = train(yz_, zy_,
                                {"--dry-run", "--pipeline.train={view: {field: x}, a: {field: y}}",
                                 "--pipeline.val={x: x, b: {field: y}}"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, IsEmpty());
}

TEST_F(OutputChoiceTest, AnEvaluationReadsTheFieldsOfTheTraining) {
  ASSERT_EQ(train(yz_, yz_, {}).exit_code, 0);
  const std::string run = folder_ / "runs/r";
  const auto facts = nlohmann::json::parse(test::read_text(run + "/run.json"));
  EXPECT_EQ(facts.at("inputs"), nlohmann::json({"x"}));
  EXPECT_EQ(facts.at("targets"), nlohmann::json({"y"}));
  EXPECT_EQ(precast({"eval", run}).exit_code, 0);
  const std::string other = "--data.val_dataset=" + zy_;
  const ChildResult refused = precast({"eval", run, other});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, Names("data.targets", "'y'", "'z'", zy_));
  EXPECT_EQ(precast({"eval", run, other, "--data.targets=[y]"}).exit_code, 0);
  EXPECT_EQ(precast({"predict", run, other}).exit_code, 0) << "targets are not read";
  test::write_bytes(folder_ / "photo.jpg", bytes_of("x"));
  const ChildResult photo = precast({"predict", run, folder_ / "photo.jpg"});
  EXPECT_EQ(photo.exit_code, 2) << "the network reads no images";
  EXPECT_THAT(photo.errors, Names("predict", "images", yz_));
  const ChildResult renamed = precast({"eval", run, "--data.val_dataset=" + k_});
  EXPECT_EQ(renamed.exit_code, 0) << renamed.errors;
  EXPECT_THAT(renamed.errors, Names("warning", "data.targets", "'k'"));
}

}  // namespace
}  // namespace precast::tools
