#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

namespace precast::test {
namespace {

/// Runs the commands of an example's README, in a separate folder.
class TasksTest : public testing::Test {
 protected:
  /// Runs a shell command in the folder, with `precast` on its PATH.
  void shell(const std::string& line) {
    Program program({"/bin/sh", "-c",
                     fmt::format("cd {} && PATH={}:$PATH && {}", folder_.path().string(),
                                 test::bin_dir(), line)});
    EXPECT_EQ(program.wait(), 0) << line << "\n" << program.out << program.err;
  }
  /// @param ending the file name extension of the files that make_data.py writes.
  void make_data(const std::string& example, const std::string& ending) {
    shell(fmt::format(
        "python3 -B {}/examples/{}/make_data.py . && precast write train.{ending} train.beton && "
        "precast write val.{ending} val.beton",
        test::source_dir(), example, fmt::arg("ending", ending)));
  }
  void build(const std::string& example) {
    shell(fmt::format("'{0}' -S {1}/examples/{2} -B build -Dprecast_DIR={3} && '{0}' --build build",
                      PRECAST_CMAKE, test::source_dir(), example, test::build_dir()));
  }
  /// Trains with a copy of an example's recipe, because the paths of plug-ins are relative to the
  /// recipe's folder.
  /// @return summary.json
  nlohmann::json train(const std::string& recipe, const std::string& options = "") {
    shell(
        fmt::format("cp {}/examples/{} r.yaml && rm -rf runs/r && precast train r.yaml "
                    "--logging.run_id=r --training.device=cpu {}",
                    test::source_dir(), recipe, options));
    return nlohmann::json::parse(std::ifstream(folder_ / "runs/r/summary.json"));
  }

  TemporaryFolder folder_;
};

TEST_F(TasksTest, LinearRegressionTakesTheStepsOfFfcvsDocumentation) {
  make_data("linear_regression", "npz");
  // The noise in the data has the variance 1, so the best possible mse is about 1.
  EXPECT_LT(train("linear_regression/recipe.yaml").at("mse").get<double>(), 1.05);
  shell(fmt::format("python3 -B {}/examples/linear_regression/twin.py train.npz truth.json runs/r",
                    test::source_dir()));
}

class FashionTasksTest : public TasksTest {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist"))
      GTEST_SKIP() << "apt install dataset-fashion-mnist";
  }
};

TEST_F(FashionTasksTest, TabularRegressionExplainsTheLowerHalfOfAGarment) {
  make_data("tabular_regression", "npz");
  EXPECT_GT(train("tabular_regression/recipe.yaml").at("r2").get<double>(), 0.70);
}

TEST_F(FashionTasksTest, MultiLabelFindsTheGarmentsOfAnImage) {
  make_data("multi_label", "npz");
  EXPECT_GT(train("multi_label/recipe.yaml").at("map").get<double>(), 0.74);
}

TEST_F(FashionTasksTest, SegmentationFindsTheClassOfThePixels) {
  make_data("segmentation", "npz");
  EXPECT_GT(train("segmentation/recipe.yaml").at("mean_iou").get<double>(), 0.55);
}

TEST_F(FashionTasksTest, TwoViewsTeachFeaturesWithoutLabels) {
  build("two_views");
  for (const auto* const split : {"train-images-idx3-ubyte.gz train.beton --subset 10000",
                                  "t10k-images-idx3-ubyte.gz val.beton --subset 1000"})
    shell(
        fmt::format("precast write /usr/share/datasets/fashion-mnist/{} --image.mode raw", split));
  // Each of 1,000 images must find its other view among all images. Chance is 0.001; random weights
  // reach 0.02.
  EXPECT_GT(train("two_views/recipe.yaml").at("view_top_1").get<double>(), 0.15);
  shell("mv runs/r runs/views");
  const auto probe = [&](const std::string& options) {
    return train("two_views/probe.yaml", options).at("top_1").get<double>();
  };
  const double random = probe("");
  const double learned = probe("--model.weights=runs/views/final_weights.safetensors");
  EXPECT_GT(learned, 0.74);
  EXPECT_GT(learned, random + 0.06);
}

TEST_F(TasksTest, TextClassificationNamesTheLanguage) {
  build("text_classification");
  make_data("text_classification", "jsonl");
  EXPECT_GT(train("text_classification/recipe.yaml").at("top_1").get<double>(), 0.90);
}

TEST_F(TasksTest, TabularClassificationNamesTheLanguage) {
  make_data("tabular_classification", "npz");
  const nlohmann::json summary = train("tabular_classification/recipe.yaml");
  EXPECT_GT(summary.at("top_1").get<double>(), 0.89);
  EXPECT_GT(summary.at("per_class_accuracy").get<double>(), 0.87);
}

}  // namespace
}  // namespace precast::test
