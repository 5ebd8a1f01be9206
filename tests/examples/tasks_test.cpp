#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

namespace precast::test {
namespace {

/// The commands of an example's README, in a folder of their own.
nlohmann::json train_example(const std::string& name) {
  const TemporaryFolder folder;
  const std::string example = fmt::format("{}/examples/{}", PRECAST_SOURCE_DIR, name);
  const std::string line = fmt::format(
      "cd {0} && PATH={1}:$PATH && python3 -B {2}/make_data.py . && "
      "precast write train.npz train.beton && precast write val.npz val.beton && "
      "precast train {2}/recipe.yaml --logging.run_id=r --training.device=cpu",
      folder.path().string(), PRECAST_BIN_DIR, example);
  Program program({"/bin/sh", "-c", line});
  EXPECT_EQ(program.wait(), 0) << program.out << program.err;
  return nlohmann::json::parse(std::ifstream(folder / "runs/r/summary.json"));
}

class TasksTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist"))
      GTEST_SKIP() << "apt install dataset-fashion-mnist";
  }
};

TEST_F(TasksTest, TabularRegressionExplainsTheLowerHalfOfAGarment) {
  EXPECT_GT(train_example("tabular_regression").at("r2").get<double>(), 0.70);
}

TEST_F(TasksTest, MultiLabelFindsTheGarmentsOfAPicture) {
  EXPECT_GT(train_example("multi_label").at("map").get<double>(), 0.74);
}

TEST_F(TasksTest, SegmentationFindsTheClassOfThePixels) {
  EXPECT_GT(train_example("segmentation").at("mean_iou").get<double>(), 0.55);
}

}  // namespace
}  // namespace precast::test
