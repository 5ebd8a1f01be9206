#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>

#include "framework/core/archive/zip_file.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tools/app/plan.h"
#include "tools/app/recipe.h"
#include "tools/cli/recipe_arguments.h"

namespace precast::tools {
namespace {

using test::Names;

/// The keys and values of rn18_configs/08508b1c-ae7f-4022-9090-06a520f998c8.yaml and of
/// rn50_configs/23cf4c2e-2111-472c-8b9d-e47325c51253.yaml of FFCV's first release.
constexpr const char* kResNet18 = R"(data:
  gpu: 0
  in_memory: 1
  num_workers: 12
  train_dataset: /mnt/ffcv/train_400_0.10_90.ffcv
  val_dataset: /mnt/ffcv/val_400_0.10_90.ffcv
dist:
  world_size: 1
logging:
  folder: /mnt/ffcv_rn18_1gpu_FINAL/6930d095-6a4b-49ba-9ed8-6fd73ba1ff2f
  log_level: 0
lr:
  lr: 0.5
  lr_peak_epoch: 2
  lr_schedule_type: cyclic
model:
  arch: resnet18
resolution:
  end_ramp: 13
  max_res: 192
  min_res: 160
  start_ramp: 11
training:
  batch_size: 1024
  bn_wd: 0
  distributed: 0
  epochs: 16
  label_smoothing: 0.1
  momentum: 0.9
  optimizer: sgd
  weight_decay: 5e-5
uid: 08508b1c-ae7f-4022-9090-06a520f998c8
validation:
  lr_tta: true
  resolution: 256
)";
constexpr const char* kResNet50 = R"(data:
  in_memory: 1
  num_workers: 12
  train_dataset: /home/ubuntu/train_500_0.5_90.ffcv
  val_dataset: /home/ubuntu/val_500_0.5_90.ffcv
dist:
  world_size: 8
logging:
  folder: /home/ubuntu/ffcv_rn50_8gpu/3872322e-0a9f-4102-a05a-803f0fea30e1
lr:
  lr: 1.7
  lr_schedule_type: cyclic
model:
  arch: resnet50
resolution:
  end_ramp: 76
  max_res: 192
  min_res: 160
  start_ramp: 65
training:
  batch_size: 512
  bn_wd: 0
  distributed: 1
  epochs: 88
  label_smoothing: 0.1
  momentum: 0.9
  optimizer: sgd
  weight_decay: 0.0001
uid: 23cf4c2e-2111-472c-8b9d-e47325c51253
validation:
  lr_tta: true
  resolution: 256
)";

const std::string kFolder = test::source_dir() + "/configs/imagenet/first_release/";

const nlohmann::json& golden() {
  static const nlohmann::json json =
      nlohmann::json::parse(std::ifstream(test::golden_dir() + "/ffcv_recipes.json"));
  return json;
}

TrainPlan plan_of(const Recipe& recipe, const Registries& registries) {
  return make_plan(requested_run(recipe), registries, 1281167, 1000);
}

/// The CRC-32 of the rates of all iterations of an epoch, as little-endian float64.
std::uint32_t crc_of_rates(const TrainPlan& plan, std::int64_t epoch) {
  std::vector<double> rates;
  for (std::int64_t step = 0; step < plan.steps_per_epoch; ++step)
    rates.push_back(plan.lr(epoch, step));
  return crc32(std::as_bytes(std::span(rates)));
}

/// The names of the parameters that do not decay. With gradients of 0 and no velocity, a step
/// changes only the parameters that decay.
std::string unchanged_by_decay(const TrainPlan& plan, const std::vector<NamedTensor>& parameters,
                               const Registries& registries) {
  std::vector<at::Tensor> before;
  for (const NamedTensor& parameter : parameters) {
    // Decay would not change parameters that start at 0.
    parameter.tensor.detach().add_(0.5);
    parameter.tensor.mutable_grad() = at::zeros_like(parameter.tensor);
    before.push_back(parameter.tensor.detach().clone());
  }
  registries.optimizers.make(plan.optimizer, {parameters, plan.peak_lr})->step(1, std::nullopt);
  std::string unchanged;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (at::equal(parameters[i].tensor, before[i]))
      unchanged += (unchanged.empty() ? "" : " ") + parameters[i].name;
  }
  return unchanged;
}

class FirstReleaseTest : public ::testing::TestWithParam<std::string> {
 protected:
  Registries registries_ = make_registries();
};

TEST_P(FirstReleaseTest, RatesAndSizesOfEveryIterationMatchTheScript) {
  const Recipe recipe = load_recipe(kFolder + GetParam() + "_epochs.yaml", {}, registries_);
  const TrainPlan plan = plan_of(recipe, registries_);
  const nlohmann::json& run = golden()["runs"][GetParam()];
  EXPECT_EQ(plan.steps_per_epoch, run["iterations"]);
  ASSERT_EQ(plan.epochs, std::ssize(run["epochs"]));
  ASSERT_EQ(std::ssize(plan.image_size_px), plan.epochs);
  for (std::int64_t epoch = 0; epoch < plan.epochs; ++epoch) {
    SCOPED_TRACE(epoch);
    const nlohmann::json& expected = run["epochs"][static_cast<std::size_t>(epoch)];
    EXPECT_EQ(plan.image_size_px[static_cast<std::size_t>(epoch)], expected[0]);
    EXPECT_DOUBLE_EQ(plan.lr(epoch, 0), expected[1].get<double>());
    EXPECT_DOUBLE_EQ(plan.lr(epoch, plan.steps_per_epoch - 1), expected[2].get<double>());
    EXPECT_EQ(crc_of_rates(plan, epoch), expected[3].get<std::uint32_t>());
  }
}

TEST_P(FirstReleaseTest, HasTheNetworkAndTheSettingsOfItsTable) {
  const Recipe recipe = load_recipe(kFolder + GetParam() + "_epochs.yaml", {}, registries_);
  const TrainPlan plan = plan_of(recipe, registries_);
  const bool small = plan.model.arch == "resnet18";
  EXPECT_EQ("rn" + plan.model.arch.substr(6) + "_" + std::to_string(plan.epochs), GetParam());
  EXPECT_FALSE(plan.model.blurpool);
  EXPECT_TRUE(plan.channels_last);
  EXPECT_EQ(plan.global_batch_size, small ? 1024 : 4096);
  EXPECT_EQ(plan.loss.options.flow(), "{label_smoothing: 0.1}");
  EXPECT_EQ(recipe.config.validation.resolution, 256);
  EXPECT_TRUE(recipe.config.validation.lr_tta);
  EXPECT_EQ(recipe.config.logging.log_level, small ? 0 : 1);
}

INSTANTIATE_TEST_SUITE_P(Recipes, FirstReleaseTest,
                         ::testing::Values("rn18_16", "rn18_24", "rn18_32", "rn18_40", "rn18_56",
                                           "rn18_88", "rn50_16", "rn50_24", "rn50_32", "rn50_40",
                                           "rn50_56", "rn50_88"),
                         [](const auto& test) { return test.param; });

class FirstReleaseFilesTest : public ::testing::TestWithParam<std::pair<const char*, std::string>> {
 protected:
  FirstReleaseFilesTest() { std::ofstream(file_) << GetParam().first; }

  test::TemporaryFolder folder_;
  std::string file_ = folder_ / "r.yaml";
  Registries registries_ = make_registries();
};

TEST_P(FirstReleaseFilesTest, LoadUnchangedAsTheRecipeOfTheSameName) {
  nlohmann::ordered_json theirs = load_recipe(file_, {}, registries_).resolved;
  nlohmann::ordered_json ours =
      load_recipe(kFolder + GetParam().second + "_epochs.yaml", {}, registries_).resolved;
  for (const char* key : {"data.train_dataset", "data.val_dataset", "logging.folder"}) {
    EXPECT_NE(theirs.at(key), ours.at(key));
    theirs.erase(key);
    ours.erase(key);
  }
  EXPECT_EQ(theirs, ours);
}

TEST_P(FirstReleaseFilesTest, TheDecayedParametersMatchTheScript) {
  const TrainPlan plan = plan_of(load_recipe(file_, {}, registries_), registries_);
  const auto model = make_model(registries_.models, plan.model);
  EXPECT_EQ(unchanged_by_decay(plan, model->parameters(), registries_),
            golden()["no_decay"][plan.model.arch].get<std::string>());
}

TEST_P(FirstReleaseFilesTest, ANoticeNamesTheKeysWithoutEffect) {
  ::testing::internal::CaptureStderr();
  static_cast<void>(load_recipe(file_, {}, registries_));
  const std::string printed = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(printed, Names("uid", "training.bn_wd"));
}

INSTANTIATE_TEST_SUITE_P(Files, FirstReleaseFilesTest,
                         ::testing::Values(std::pair{kResNet18, "rn18_16"},
                                           std::pair{kResNet50, "rn50_88"}),
                         [](const auto& test) { return test.param.second; });

class Cifar10ExampleTest : public ::testing::Test {
 protected:
  Registries registries_ = make_registries();
  Recipe recipe_ = load_recipe(test::source_dir() + "/configs/cifar10/rn9.yaml", {}, registries_);
  TrainPlan plan_ = make_plan(requested_run(recipe_), registries_, 50000, 10);
};

TEST_F(Cifar10ExampleTest, RateOfEveryIterationMatchesTheScript) {
  ASSERT_EQ(plan_.steps_per_epoch, golden()["cifar10"]["iterations"]);
  std::istringstream rates(golden()["cifar10"]["rates"].get<std::string>());
  for (std::int64_t epoch = 0; epoch < plan_.epochs; ++epoch) {
    for (std::int64_t step = 0; step < plan_.steps_per_epoch; ++step) {
      double expected = -1;
      ASSERT_TRUE(rates >> expected);
      ASSERT_NEAR(plan_.lr(epoch, step), expected, 1e-15) << epoch << " " << step;
    }
  }
  std::string more;
  EXPECT_FALSE(rates >> more) << more;
}

TEST_F(Cifar10ExampleTest, AllWeightsDecay) {
  const std::vector<NamedTensor> parameters =
      make_model(registries_.models, plan_.model)->parameters();
  ASSERT_EQ(parameters.size(), 25U);
  EXPECT_EQ(unchanged_by_decay(plan_, parameters, registries_), "");
}

}  // namespace
}  // namespace precast::tools
