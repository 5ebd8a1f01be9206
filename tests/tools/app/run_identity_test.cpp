#include "tools/app/run_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "data/write/writer.h"
#include "framework/core/file.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;
using test::Names;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(RunIdentityTest, SwitchesThatEarlierVersionsRecordedAsNumbersAreTheSame) {
  const ordered_json there = {{"validation.lr_tta", 1}, {"dist.sync_bn", 0}};
  EXPECT_THAT(compare_identities(there, {{"validation.lr_tta", true}, {"dist.sync_bn", false}}),
              IsEmpty());
  EXPECT_THAT(compare_identities(there, {{"validation.lr_tta", false}, {"dist.sync_bn", false}}),
              ElementsAre(Names("validation.lr_tta", "1", "false")));
}

TEST(RunIdentityTest, ADifferenceIsNamedWithBothValues) {
  EXPECT_THAT(compare_identities({{"training.epochs", 16}}, {{"training.epochs", 18}}),
              ElementsAre(Names("training.epochs", 16, 18)));
  EXPECT_THAT(compare_identities({{"a", 1}}, {{"b", 1}}), ElementsAre(Names("b"), Names("a")));
}

TEST(RunIdentityTest, WhatDefaultsResolveToIsComparedIfBothHaveIt) {
  const ordered_json there = resumable_part({{"validation.best_metric", ""},
                                             {"plan.best_metric", "top_1"},
                                             {"plan.precision", "fp16"},
                                             {"training.epochs", 16}});
  ordered_json here = {
      {"plan.best_metric", "top_1"}, {"plan.precision", "fp16"}, {"training.epochs", 16}};
  EXPECT_THAT(compare_identities(there, here), IsEmpty());
  here["plan.best_metric"] = "val_loss";
  here["plan.precision"] = "fp32";
  EXPECT_THAT(compare_identities(there, here),
              ElementsAre(Names("plan.best_metric", "top_1", "val_loss"),
                          Names("plan.precision", "fp16", "fp32")));
  EXPECT_THAT(compare_identities({{"training.epochs", 16}}, here), IsEmpty());
}

TEST(RunIdentityTest, TheEvaluationIsTheSameOnTheSameImagesOnly) {
  const ordered_json there = {{"dataset.val", "5 samples"}, {"dataset.train", "9 samples"},
                              {"pipeline.val", nullptr},    {"validation.resolution", 64},
                              {"validation.lr_tta", 1},     {"data.jpeg_dct", "ifast"}};
  EXPECT_TRUE(has_same_evaluation(there, there));
  const std::pair<const char*, ordered_json> values[] = {
      {"dataset.val", "6 samples"},
      {"pipeline.val", ordered_json::array({"whole_image"})},
      {"validation.resolution", 32},
      {"validation.lr_tta", false},
      {"data.jpeg_dct", "islow"}};
  for (const auto& [key, value] : values) {
    ordered_json here = there;
    here[key] = value;
    EXPECT_FALSE(has_same_evaluation(there, here)) << key;
  }
  ordered_json here = there;
  here["dataset.train"] = "8 samples";
  here["validation.lr_tta"] = true;
  here["training.epochs"] = 18;
  here["data.targets"] = ordered_json::array({"z"});
  here["training.label_smoothing"] = 0.6;
  EXPECT_TRUE(has_same_evaluation(there, here));
  ordered_json by_loss = there;
  by_loss.update({{"plan.best_metric", "val_loss"},
                  {"training.label_smoothing", 0.1},
                  {"data.targets", ordered_json::array({"y"})}});
  for (const auto& [key, value] :
       {std::pair<const char*, ordered_json>{"training.label_smoothing", 0.6},
        {"training.loss", "bce"},
        {"data.targets", ordered_json::array({"z"})}}) {
    ordered_json other = by_loss;
    other[key] = value;
    EXPECT_FALSE(has_same_evaluation(by_loss, other)) << key;
  }
}

/// Writes a dataset whose labels are 0, 1, ..., samples - 1.
std::filesystem::path numbers(const std::filesystem::path& path, std::uint64_t samples) {
  data::BetonWriter writer(path, {{"label", data::FieldType::integer}}, samples, {});
  for (std::uint64_t i = 0; i < samples; ++i) {
    data::EncodedValue value;
    value.metadata.resize(8);
    data::store(value.metadata.data(), i);
    writer.add({&value, 1});
  }
  writer.finish();
  return path;
}

TEST(RunIdentityTest, HasAllFilesOfADatasetInOrder) {
  const test::TemporaryFolder folder;
  const auto a = numbers(folder / "a.beton", 4);
  const auto b = numbers(folder / "b.beton", 6);
  using Paths = std::vector<std::filesystem::path>;
  const auto of = [](const Paths& paths) {
    return describe_dataset(data::BetonReader(paths)).get<std::string>();
  };
  EXPECT_EQ(of({a, b}), of({a}) + "; " + of({b}));
  EXPECT_NE(of({a, b}), of({b, a}));
  EXPECT_THAT(of({a}), Names("4 samples", data::BetonReader(a).fingerprint()));
}

TEST(RunIdentityTest, HasTheSamplesOfAListAndNotItsPath) {
  const test::TemporaryFolder folder;
  const data::BetonReader train(numbers(folder / "a.beton", 9));
  const auto listed = [&](const std::string& name, const std::string& text) {
    write_file(folder / name, text);
    return describe_subset("@" + (folder / name).string(), train);
  };
  EXPECT_EQ(listed("one.txt", "1\n3:5\n"), listed("two.txt", "# the same\n4\n3\n1\n"));
  EXPECT_NE(listed("one.txt", "1\n3:5\n"), listed("one.txt", "1\n3:6\n"));
  EXPECT_EQ(describe_subset("random:4", train), "random:4");
  EXPECT_EQ(describe_subset("", train), "");
}

TEST(RunIdentityTest, OnlyWhatAffectsLearningMustStayOnResume) {
  const ordered_json part = resumable_part({{"training.epochs", 16},
                                            {"data.num_workers", 4},
                                            {"logging.folder", "runs"},
                                            {"model.kernels", "fused"},
                                            {"loss.kernels", "fused"},
                                            {"optimizer.kernels", "fused"},
                                            {"data.label_field", "label"},
                                            {"data.image_field", ""}});
  EXPECT_EQ(part, ordered_json({{"training.epochs", 16},
                                {"data.targets", ordered_json::array({"label"})},
                                {"data.inputs", ordered_json::array()}}));
}

}  // namespace
}  // namespace precast::tools
