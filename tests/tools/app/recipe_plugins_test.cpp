#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "framework/api/batch.h"
#include "framework/api/run_facts.h"
#include "framework/core/error.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_file.h"
#include "tools/app/list.h"
#include "tools/app/model_probe.h"
#include "tools/app/plan.h"
#include "tools/app/recipe.h"
#include "tools/app/task.h"
#include "tools/app/torch_errors.h"
#include "tools/cli/command.h"

namespace precast::tools {
namespace {

using test::Names;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class RecipePluginsTest : public testing::Test {
 protected:
  RecipePluginsTest() {
    std::filesystem::copy(test::test_plugin_dir() + "/train_parts.so", folder_ / "train_parts.so");
  }
  Recipe load(const std::string& text) {
    std::ofstream(folder_ / "r.yaml") << text;
    return load_recipe(folder_ / "r.yaml", {}, registries_);
  }

  /// The failure, as precast-train reports it.
  static Failure describe_torch_failure(const std::exception_ptr& thrown) {
    try {
      rethrow_translated(thrown);
    } catch (...) {
      return describe_failure(std::current_exception());
    }
  }

  test::TemporaryFolder folder_;
  Registries registries_ = make_registries();
};

TEST_F(RecipePluginsTest, PartsOfAPluginAreKnownWithTheirOptionsAndTheRecipeRecordsTheFile) {
  const Recipe recipe = load(
      "plugins: [train_parts.so]\n"
      "training: {epochs: 9}\n"
      "methods: [half_epochs: {factor: 3}]\n");
  EXPECT_EQ(make_plan(requested_run(recipe), registries_, 100, 10).epochs, 3);
  EXPECT_EQ(recipe.resolved["plugins"][0], (folder_ / "train_parts.so").string());
  EXPECT_EQ(recipe.resolved["plugins.xxh3"][0].get<std::string>().size(), 16U);
}

/// A method whose configure() is a function.
class Editing final : public Method {
 public:
  using Edit = std::function<void(TrainPlan&)>;
  explicit Editing(Edit edit) : edit_(std::move(edit)) {}
  void configure(TrainPlan& plan) const override { edit_(plan); }

 private:
  Edit edit_;
};

TEST_F(RecipePluginsTest, ChangesThatAPlanDoesNotAllowNameTheMethodAndTheField) {
  Editing::Edit edit;
  registries_.methods.add("editing", "", [&edit] { return std::make_unique<Editing>(edit); });
  const auto refusal = [&](Editing::Edit change) -> std::string {
    edit = std::move(change);
    try {
      static_cast<void>(load("training: {epochs: 4}\nmethods: [editing]\n"));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal([](TrainPlan& plan) { plan.seed = 7; }), Names("editing", "seed", 7));
  EXPECT_THAT(refusal([](TrainPlan& plan) { plan.steps_per_epoch = 3; }),
              Names("editing", "steps_per_epoch", 3));
  EXPECT_THAT(refusal([](TrainPlan& plan) { plan.global_batch_size = 9; }),
              Names("editing", "global_batch_size", 9));
  EXPECT_THAT(refusal([](TrainPlan& plan) { plan.peak_lr = 0.25; }),
              Names("editing", "peak_lr", "0.25"));
  EXPECT_THAT(refusal([](TrainPlan& plan) { plan.epochs = 6; }),
              Names("editing", "image_size_px", 6, 4));
  EXPECT_THAT(refusal([](TrainPlan& plan) { plan.image_size_px.pop_back(); }),
              Names("editing", "image_size_px", 4, 3));
  EXPECT_EQ(refusal([](TrainPlan& plan) {
              plan.epochs = 6;
              plan.image_size_px.resize(6, 64);
              plan.channels_last = true;
            }),
            "");
}

TEST_F(RecipePluginsTest, ListShowsAPluginsPartsWithTheirDefaults) {
  const std::string plugin = folder_ / "train_parts.so";
  testing::internal::CaptureStdout();
  const int code = run_list({"methods", "--plugin", plugin, "--json"});
  const auto listed = nlohmann::json::parse(testing::internal::GetCapturedStdout());
  ASSERT_EQ(code, 0);
  EXPECT_EQ(listed.size(), 1U) << "only methods are listed";
  const auto& methods = listed.at("methods");
  const nlohmann::json& last = methods.at(methods.size() - 2);
  EXPECT_EQ(last.at("name"), "half_epochs");
  EXPECT_EQ(last.at("options").at("factor"), 2);
}

/// A model that ignores all settings of a recipe.
class MethodUnawareModel final : public ImageModel {
 public:
  at::Tensor classify(const at::Tensor& images) override { return images.mean({2, 3}); }
  [[nodiscard]] std::vector<NamedTensor> parameters() const override { return {}; }
  [[nodiscard]] std::vector<NamedTensor> state() const override { return {}; }
  void train(bool) override {}
  void to(at::Device, bool) override {}
};

TEST(ModelProbeTest, ModelsThatIgnoreAMethodAreReported) {
  ModelRegistry models = make_registries().models;
  models.add("deaf", "", [](const ModelSpec&) { return std::make_unique<MethodUnawareModel>(); });
  TrainPlan plan;
  plan.image_size_px = {32};
  plan.model = {.arch = "deaf", .num_classes = 3, .blurpool = true, .ghost_batch_size = 2};
  EXPECT_THAT(find_ignored_settings(models, plan, /*sync_bn=*/true),
              testing::ElementsAre(Names("blurpool", "deaf"), Names("dist.sync_bn", "deaf"),
                                   Names("ghost_batch_norm", "deaf")));
  plan.model.arch = "resnet18";
  EXPECT_THAT(find_ignored_settings(models, plan, /*sync_bn=*/true), testing::IsEmpty());
}

/// A model that returns a given output.
class FixedOutputModel final : public ImageModel {
 public:
  FixedOutputModel(at::Tensor output, bool has_parameters)
      : output_(std::move(output)), has_parameters_(has_parameters) {}
  at::Tensor classify(const at::Tensor& /*images*/) override { return output_; }
  [[nodiscard]] std::vector<NamedTensor> parameters() const override {
    if (!has_parameters_) return {};
    return {{"w", at::ones({1})}};
  }
  [[nodiscard]] std::vector<NamedTensor> state() const override { return parameters(); }
  void train(bool) override {}
  void to(at::Device, bool) override {}

 private:
  at::Tensor output_;
  bool has_parameters_;
};

TEST(ModelProbeTest, OutputsThatAreNoLogitsAreRefusedByTheModelsName) {
  const auto refusal = [](at::Tensor output, bool has_parameters = true) -> std::string {
    FixedOutputModel model(std::move(output), has_parameters);
    TrainPlan plan;
    plan.model = {.arch = "own", .num_classes = 3};
    try {
      check_output(&model, plan, make_batch(at::zeros({2, 3, 32, 32}), at::zeros({2}, at::kLong)));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(at::ones({2, 3})), "");
  EXPECT_THAT(refusal(at::ones({2, 4})), Names("'own'", "[2, 3]", "[2, 4]"));
  EXPECT_THAT(refusal(at::ones({2, 2})), Names("'own'", "[2, 3]", "[2, 2]"));
  EXPECT_THAT(refusal(at::ones({2, 3, 1})), Names("'own'", "[2, 3]", "[2, 3, 1]"));
  EXPECT_THAT(refusal({}), Names("'own'", "[2, 3]"));
  EXPECT_THAT(refusal(at::ones({2, 3}, at::kLong)), Names("'own'", "Long"));
  EXPECT_THAT(refusal(at::ones({2, 3}), /*has_parameters=*/false), Names("'own'"));
}

/// A loss that returns `result`.
class FixedResultLoss final : public Loss {
 public:
  explicit FixedResultLoss(at::Tensor result) : result_(std::move(result)) {}
  [[nodiscard]] at::Tensor operator()(const at::Tensor& /*outputs*/,
                                      const Batch& /*batch*/) const override {
    return result_;
  }

 private:
  at::Tensor result_;
};

/// A metric that declares `sums` sums, or rows, and counts `result`.
class FixedSumsMetric final : public Metric {
 public:
  FixedSumsMetric(at::Tensor result, std::int64_t sums, bool needs_rows)
      : result_(std::move(result)), sums_(sums), needs_rows_(needs_rows) {}
  [[nodiscard]] std::string name() const override { return "counting"; }
  [[nodiscard]] bool needs_rows() const override { return needs_rows_; }
  [[nodiscard]] std::int64_t sums() const override { return sums_; }
  [[nodiscard]] at::Tensor count(const at::Tensor& /*outputs*/,
                                 const Batch& /*batch*/) const override {
    return result_;
  }
  [[nodiscard]] double value(const at::Tensor& /*sums*/, std::int64_t /*samples*/) const override {
    return 0;
  }

 private:
  at::Tensor result_;
  std::int64_t sums_;
  bool needs_rows_;
};

TEST_F(RecipePluginsTest, WhatLossAndMetricsReturnIsCheckedAtTheirKeys) {
  Recipe recipe = load("training: {loss: cross_entropy}\nvalidation: {metrics: [top_k: {k: 2}]}\n");
  const Batch batch = make_batch(at::zeros({2, 3, 8, 8}), at::zeros({2}, at::kLong));
  TrainPlan plan;
  plan.model = {.arch = "resnet18", .num_classes = 3};
  const auto refusal = [&](const Loss& loss) -> std::string {
    try {
      check_parts(nullptr, plan, loss, recipe, batch);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  const FixedResultLoss fine(at::zeros({}));
  EXPECT_EQ(refusal(fine), "");
  const auto at_loss = Names("r.yaml:1:18", "training.loss", "cross_entropy");
  EXPECT_THAT(refusal(FixedResultLoss(at::zeros({2}))), AllOf(at_loss, Names("[2]")));
  EXPECT_THAT(refusal(FixedResultLoss(at::zeros({}, at::kLong))), AllOf(at_loss, Names("Long")));
  EXPECT_THAT(refusal(FixedResultLoss(at::Tensor())), at_loss);

  const auto counts = [&](at::Tensor result, std::int64_t sums, bool needs_rows = false) {
    recipe.metrics = {std::make_shared<FixedSumsMetric>(std::move(result), sums, needs_rows)};
    return refusal(fine);
  };
  EXPECT_EQ(counts(at::zeros({3}, at::kDouble), 3), "");
  EXPECT_EQ(counts(at::zeros({3}, at::kDouble), 0), "");
  EXPECT_EQ(counts(at::zeros({2, 5}, at::kDouble), 0, /*needs_rows=*/true), "");
  const auto at_metric = Names("r.yaml:2:23", "validation.metrics", "counting", "Double");
  EXPECT_THAT(counts(at::zeros({1}), 1), AllOf(at_metric, Names("Float")));
  EXPECT_THAT(counts(at::zeros({2}, at::kDouble), 1), AllOf(at_metric, Names("[1]", "[2]")));
  EXPECT_THAT(counts(at::zeros({}, at::kDouble), 1), at_metric);
  EXPECT_THAT(counts(at::zeros({2}, at::kDouble), 0, /*needs_rows=*/true),
              AllOf(at_metric, Names("[2, columns]")));
  EXPECT_THAT(counts(at::zeros({3, 5}, at::kDouble), 0, /*needs_rows=*/true),
              AllOf(at_metric, Names("[3, 5]")));
  EXPECT_THAT(counts(at::Tensor(), 1), at_metric);
}

constexpr const char* kFlatNet =
    "model: {arch: layers, params: {image_size: 32, layers: [conv: {out: 4}, relu, flatten, "
    "linear]}}\n"
    "validation: {resolution: 32}\n";

TEST_F(RecipePluginsTest, ModelOfOneImageSizeIsRefusedWhereSizesChange) {
  EXPECT_NO_THROW((void)load(std::string(kFlatNet) + "resolution: {min_res: 32, max_res: 32}\n"));
  try {
    static_cast<void>(load(std::string(kFlatNet) +
                           "resolution: {min_res: 32, max_res: 64, end_ramp: 4}\n"
                           "training: {epochs: 6}\n"));
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), Names("'layers'", "(32, 64 px)", "global_avg_pool"));
    EXPECT_EQ(test::occurrences(error.what(), "64 px"), 2)
        << "in the list of sizes, and as the size that fails";
  }
  // The sizes are already equal, so the error must not suggest making them equal.
  try {
    static_cast<void>(
        load("model: {arch: layers, params: {image_size: 32, layers: [flatten, linear]}}\n"
             "validation: {resolution: 64}\nresolution: {min_res: 64, max_res: 64}\n"));
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), Names("'layers'", 64));
    EXPECT_EQ(test::occurrences(error.what(), "resolution."), 0) << error.what();
  }
}

TEST_F(RecipePluginsTest, AMistakeInAModelsParametersHasOnePosition) {
  const auto refusal = [&](const std::string& params) -> std::string {
    try {
      static_cast<void>(load("model:\n  arch: layers\n  params: {" + params + "}\n"));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  for (const auto& [params, key] :
       {std::pair("widht: 2, layers: [global_avg_pool, flatten, linear]", "model.params.widht"),
        std::pair("layers: [residual: {layers: [avg_pool]}, global_avg_pool, flatten, linear]",
                  "model.params.layers[0].residual")}) {
    const std::string message = refusal(params);
    EXPECT_THAT(message,
                AllOf(testing::StartsWith((folder_ / "r.yaml").string() + ":3:"), HasSubstr(key)));
    EXPECT_EQ(test::occurrences(message, "r.yaml"), 1) << message;
  }
}

TEST_F(RecipePluginsTest, BlurPoolWithoutALayerToReplaceIsAWarning) {
  testing::internal::CaptureStderr();
  static_cast<void>(load(std::string(kFlatNet) + "resolution: {min_res: 32, max_res: 32}\n" +
                         "methods: [blurpool]\n"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Names("blurpool", "'layers'"));
}

/// The options of a part in the output of `precast list KIND --json`.
nlohmann::json listed_options(const std::string& kind, const std::string& name) {
  testing::internal::CaptureStdout();
  static_cast<void>(run_list({kind, "--json"}));
  const auto listed = nlohmann::json::parse(testing::internal::GetCapturedStdout());
  for (const nlohmann::json& part : listed.at(kind)) {
    if (part.at("name") == name) return part.at("options");
  }
  ADD_FAILURE() << name;
  return {};
}

TEST(ListTest, ShowsOptionsThatModelsReadWhileTheyAreMade) {
  const auto resnet = listed_options("models", "resnet18");
  EXPECT_EQ(resnet.at("zero_init_residual"), false);
  EXPECT_EQ(resnet.at("stochastic_depth.drop_rate"), 0);
  EXPECT_EQ(listed_options("models", "layers").at("image_size"), 0);
}

TEST(ListTest, ShowsTheOptionsThatEachPartDeclares) {
  EXPECT_EQ(listed_options("schedules", "poly").at("power"), 2);
  EXPECT_FALSE(listed_options("schedules", "step").contains("power"));
  EXPECT_EQ(listed_options("optimizers", "lars").at("trust_coefficient"), 0.001);
  EXPECT_EQ(listed_options("optimizers", "adamw").at("weight_decay"), 4e-5);
  EXPECT_FALSE(listed_options("optimizers", "adamw").contains("momentum"));
  EXPECT_EQ(listed_options("losses", "bce").at("target_threshold"), -1);
  EXPECT_TRUE(listed_options("orders", "weighted").contains("weights"));
  EXPECT_FALSE(listed_options("orders", "random").contains("weights"));
}

TEST_F(RecipePluginsTest, AnOptimiserOfAPluginHasAnOptionOfItsOwn) {
  const Recipe recipe =
      load("plugins: [train_parts.so]\ntraining: {optimizer: sign}\noptimizer: {shrink: 0.25}\n");
  EXPECT_EQ(recipe.resolved.at("optimizer.shrink"), 0.25);
  EXPECT_FALSE(recipe.resolved.contains("training.momentum")) << "the optimiser does not read it";
  at::Tensor weight = at::ones({2}).set_requires_grad(true);
  weight.mutable_grad() = at::full({2}, 7.0);
  const std::vector<NamedTensor> parameters = {{"w", weight}};
  const auto optimizer = registries_.optimizers.make(
      make_plan(requested_run(recipe), registries_, 0, 10).optimizer, {parameters});
  optimizer->step(0.1, std::nullopt);
  EXPECT_NEAR(weight[0].item<double>(), 1 - 0.1 * 0.25, 1e-6);
}

TEST_F(RecipePluginsTest, PartsOfAPluginHaveOptionsOfTheirOwnInARecipe) {
  const Recipe recipe = load(
      "plugins: [train_parts.so]\ntraining: {loss: margin}\nloss: {margin: 3}\n"
      "lr: {lr: 8, lr_schedule_type: halving, every: 2}\n"
      "validation: {metrics: [{share: {of: 1}}]}\n");
  const TrainPlan plan = make_plan(requested_run(recipe), registries_, 0, 10);
  EXPECT_EQ(plan.schedule->lr(1), 8);
  EXPECT_EQ(plan.schedule->lr(4), 2);
  const Batch batch = make_batch(at::ones({4, 3, 2, 2}), at::ones({4}, at::kLong));
  const auto loss = registries_.losses.make(plan.loss);
  EXPECT_EQ((*loss)(at::ones({4, 10}), batch).item<double>(), 4);
  EXPECT_EQ(loss->per_sample(at::ones({4, 10}), batch).sizes(), at::IntArrayRef({4}));
  ASSERT_EQ(recipe.metrics.size(), 1U);
  EXPECT_EQ(recipe.metrics[0]->name(), "share_of_1");
  EXPECT_EQ(recipe.metrics[0]->count({}, batch)[0].item<double>(), 4);
}

TEST_F(RecipePluginsTest, MetricsAreCheckedBeforeTheStart) {
  try {
    static_cast<void>(
        load("plugins: [train_parts.so]\n"
             "validation: {metrics: [{share: {of: -1}}, shares, {top_k: {k: 5}}]}\n"));
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), Names("validation.metrics[0]", "share.of", "'shares'", "'share'",
                                    "validation.metrics[2]", "'top_5'"));
  }
}

/// A metric that counts nothing, with a given name.
class NamedMetric final : public Metric {
 public:
  explicit NamedMetric(std::string name) : name_(std::move(name)) {}
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::int64_t sums() const override { return 1; }
  [[nodiscard]] at::Tensor count(const at::Tensor& /*outputs*/,
                                 const Batch& /*batch*/) const override {
    return at::zeros({1}, at::kDouble);
  }
  [[nodiscard]] double value(const at::Tensor& /*sums*/, std::int64_t /*samples*/) const override {
    return 0;
  }

 private:
  std::string name_;
};

TEST_F(RecipePluginsTest, MetricsNamedLikeAnotherFigureOfARunAreRefused) {
  std::string name = "distance";
  registries_.metrics.add("named", "", [&name] { return std::make_unique<NamedMetric>(name); });
  const std::string recipe = "validation: {metrics: [named]}\n";
  EXPECT_EQ(load(recipe).metrics.size(), 1U);
  for (const char* reserved :
       {"epoch", "step", "steps", "current_lr", "images", "resolution", "val_time", "val_loss",
        "loader_time", "timestamp", "run_folder", "classes", "exit_code", "top_1"}) {
    name = reserved;
    EXPECT_THAT([&] { static_cast<void>(load(recipe)); },
                ThrowsMessage<ConfigError>(
                    Names("r.yaml:1:24", "validation.metrics[0]", "'" + name + "'")));
  }
}

TEST_F(RecipePluginsTest, InvalidOptionsOfAPluginPartAreReported) {
  try {
    static_cast<void>(load("plugins: [train_parts.so]\nmethods: [half_epochs: {factors: 3}]\n"));
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), Names("half_epochs.factors", "factor"));
  }
}

TEST_F(RecipePluginsTest, AThrowingConstructorIsReportedWithModelAndPlugin) {
  const auto refusal = [&](const std::string& kind, ExitCode code) {
    Registries registries = make_registries();
    std::ofstream(folder_ / "r.yaml")
        << "plugins: [train_parts.so]\nmodel: {arch: unlucky_" << kind << "}\n";
    try {
      static_cast<void>(load_recipe(folder_ / "r.yaml", {}, registries));
    } catch (...) {
      const auto failure = describe_torch_failure(std::current_exception());
      EXPECT_EQ(failure.exit_code, static_cast<int>(code)) << failure.text;
      EXPECT_THAT(failure.text, Names("train_parts.so", "'unlucky_" + kind + "'"));
      return failure.text;
    }
    ADD_FAILURE() << "accepted";
    return std::string();
  };
  EXPECT_THAT(refusal("text", ExitCode::usage),
              Names("no luck today"));  // the wording is tested: the plug-in's own words
  EXPECT_THAT(refusal("int", ExitCode::usage), Names("std::exception"));
  EXPECT_THAT(refusal("libtorch", ExitCode::usage), Names("wrong shape"));
  EXPECT_THAT(refusal("memory", ExitCode::out_of_memory),
              Names("no memory left"));  // the wording is tested: the plug-in's own words
  EXPECT_THAT(refusal("io", ExitCode::io), Names("disk gone"));
}

TEST_F(RecipePluginsTest, AnExceptionOfAModelNamesItAndIsNotARecipeError) {
  static_cast<void>(load("plugins: [train_parts.so]\n"));
  const auto model = make_model(registries_.models, {.arch = "unlucky_forward"});
  try {
    static_cast<void>(model->forward(make_batch({})));
    FAIL() << "accepted";
  } catch (...) {
    const Failure failure = describe_torch_failure(std::current_exception());
    EXPECT_EQ(failure.exit_code, static_cast<int>(ExitCode::failed));
    EXPECT_THAT(failure.text,
                Names("wrong shape", "train_parts.so", "model 'unlucky_forward'", "forward"));
  }
}

TEST_F(RecipePluginsTest, AFailedGpuIsAnErrorOfTheEnvironmentAndAFaultyKernelIsNot) {
  const auto exit_code = [](std::int32_t cuda_error) {
    return describe_torch_failure(std::make_exception_ptr(c10::AcceleratorError(
                                      {"forward", "model.cpp", 1}, cuda_error, "CUDA error")))
        .exit_code;
  };
  constexpr std::int32_t kDevicesUnavailable = 46;
  constexpr std::int32_t kUncorrectableEcc = 214;
  constexpr std::int32_t kContained = 226;
  constexpr std::int32_t kInvalidValue = 1;
  constexpr std::int32_t kAssert = 710;
  constexpr std::int32_t kLaunchFailure = 719;
  for (const std::int32_t code : {kDevicesUnavailable, kUncorrectableEcc, kContained})
    EXPECT_EQ(exit_code(code), static_cast<int>(ExitCode::environment)) << code;
  for (const std::int32_t code : {kInvalidValue, kAssert, kLaunchFailure})
    EXPECT_EQ(exit_code(code), static_cast<int>(ExitCode::failed)) << code;
}

/// A member function of Method, and a call of it.
struct Member {
  const char* name;
  std::function<void(Method&, Model&)> call;
  ExitCode code = ExitCode::failed;
};

TEST_F(RecipePluginsTest, WhatAnyMemberOfAMethodThrowsNamesThePluginTheMethodAndTheMember) {
  static_cast<void>(load("plugins: [train_parts.so]\n"));
  const auto net = make_model(registries_.models, {.arch = "unlucky_forward"});
  const Member members[] = {
      {"rules", [](Method& m, Model&) { (void)m.rules(); }, ExitCode::usage},
      {"configure",
       [](Method& m, Model&) {
         TrainPlan plan;
         m.configure(plan);
       },
       ExitCode::usage},
      {"on_run", [](Method& m, Model&) { m.on_run({}); }},
      {"on_train_begin", [](Method& m, Model& model) { m.on_train_begin(model); }},
      {"on_epoch_begin", [](Method& m, Model& model) { m.on_epoch_begin(0, model); }},
      {"on_batch",
       [](Method& m, Model&) {
         Batch batch;
         m.on_batch(batch, 0);
       }},
      {"step_strategy", [](Method& m, Model&) { (void)m.step_strategy(); }},
      {"on_backward", [](Method& m, Model& model) { m.on_backward(model); }},
      {"on_gradients", [](Method& m, Model& model) { m.on_gradients(model); }},
      {"gradient_bound", [](Method& m, Model&) { (void)m.gradient_bound(); }},
      {"records_hooks", [](Method& m, Model&) { (void)m.records_hooks(1); }},
      {"on_step_end", [](Method& m, Model& model) { m.on_step_end(model, 0); }},
      {"eval_scope", [](Method& m, Model& model) { (void)m.eval_scope(model); }},
      {"state", [](Method& m, Model&) { (void)m.state(); }},
      {"restore", [](Method& m, Model&) { m.restore({}); }},
  };
  for (const Member& member : members) {
    const auto method = registries_.methods.create("unlucky");
    Schema schema;
    method->options(schema);
    Diagnostics diagnostics;
    schema.apply(parse_override(fmt::format("{{member: {}, kind: int}}", member.name),
                                {"test", 0, 0}, diagnostics),
                 diagnostics);
    diagnostics.throw_if_errors();
    try {
      member.call(*method, *net);
      ADD_FAILURE() << member.name;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), member.code) << member.name;
      EXPECT_THAT(error.what(), Names("train_parts.so", "method 'unlucky'", member.name));
    }
  }
}

TEST_F(RecipePluginsTest, AScheduleIsMadeForOtherEpochsAsItSaysItself) {
  static_cast<void>(load("plugins: [train_parts.so]\n"));
  const auto schedule = registries_.schedules.make({"odd_warmup"}, {.epochs = 5});
  const auto shorter = schedule->with_epochs(4);
  ASSERT_NE(shorter, nullptr);
  EXPECT_EQ(shorter->lr(0), 4);
  EXPECT_THAT(
      [&] { static_cast<void>(shorter->with_epochs(3)); },
      ThrowsMessage<Error>(Names("train_parts.so", "schedule 'odd_warmup'", "with_epochs")));
}

TEST_F(RecipePluginsTest, PluginForAnotherLibtorchIsRefusedBeforeItIsOpened) {
  std::string bytes = test::read_text(folder_ / "train_parts.so");
  const std::size_t at = bytes.find("\ntorch 2.");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 9, "\ntorch 1.");
  std::ofstream(folder_ / "train_parts.so", std::ios::binary) << bytes;
  try {
    static_cast<void>(load("plugins: [train_parts.so]\n"));
    FAIL() << "accepted";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(),
                AllOf(Names("libtorch", "cmake --build"), HasSubstr("'2."), HasSubstr("'1.")));
  }
}

}  // namespace
}  // namespace precast::tools
