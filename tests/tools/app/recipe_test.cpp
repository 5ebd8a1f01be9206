#include "tools/app/recipe.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "framework/core/error.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tools/app/plan.h"
#include "tools/cli/recipe_arguments.h"

namespace precast::tools {
namespace {

using test::Names;

/// rn18_88_epochs.yaml, as published by ffcv-imagenet. Two of its keys have no effect, and one
/// number has no decimal point.
constexpr const char* kPublished = R"(data:
  gpu: 0
  in_memory: 1
  num_workers: 12
dist:
  world_size: 1
logging:
  folder: /tmp/
  log_level: 0
lr:
  lr: 0.5
  lr_peak_epoch: 2
  lr_schedule_type: cyclic
model:
  arch: resnet18
resolution:
  end_ramp: 76
  max_res: 192
  min_res: 160
  start_ramp: 65
training:
  batch_size: 1024
  bn_wd: 0
  distributed: 0
  epochs: 88
  label_smoothing: 0.1
  momentum: 0.9
  optimizer: sgd
  use_blurpool: 1
  weight_decay: 5e-5
validation:
  lr_tta: true
  resolution: 256
)";

class RecipeTest : public ::testing::Test {
 protected:
  std::string file(const std::string& text) {
    std::ofstream(folder_ / "r.yaml") << text;
    return folder_ / "r.yaml";
  }
  Recipe load(const std::string& text, std::vector<std::string> args = {}) {
    return load_recipe(file(text), take_overrides(args), registries_);
  }
  /// The complete error message for a recipe that must be refused.
  std::string refusal(const std::string& text, const std::vector<std::string>& args = {}) {
    try {
      static_cast<void>(load(text, args));
    } catch (const ConfigError& error) {
      return error.what();
    }
    ADD_FAILURE() << "accepted: " << text;
    return "";
  }
  static std::vector<std::string> names(const Recipe& recipe) {
    std::vector<std::string> all;
    for (const NamedMethod& method : recipe.methods) all.push_back(method.name);
    return all;
  }

  test::TemporaryFolder folder_;
  Registries registries_ = make_registries();
};

TEST_F(RecipeTest, PublishedFilesLoadUnchanged) {
  const Recipe recipe = load(kPublished);
  EXPECT_DOUBLE_EQ(recipe.resolved.at("training.weight_decay").get<double>(), 5e-5);
  EXPECT_EQ(recipe.config.validation.lr_tta, 1);
  EXPECT_EQ(names(recipe), (std::vector<std::string>{"blurpool", "channels_last",
                                                     "progressive_resize", "label_smoothing"}));
}

TEST_F(RecipeTest, EveryRecipeOfTheProjectLoads) {
  int found = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(test::source_dir() + "/configs")) {
    // Sweeps and tables refer to recipes; they are not recipes themselves.
    if (entry.path().parent_path().filename() == "sweeps") continue;
    if (entry.path().filename() == "table.yaml") continue;
    if (entry.path().extension() != ".yaml") continue;
    EXPECT_NO_THROW(static_cast<void>(load_recipe(entry.path(), {}, registries_))) << entry.path();
    ++found;
  }
  EXPECT_GE(found, 15);
}

TEST_F(RecipeTest, TheTwelveImageNetRecipesArePublishedOnes) {
  const int published[][3] = {{16, 11, 13}, {24, 17, 20}, {32, 23, 27},
                              {40, 29, 34}, {56, 41, 48}, {88, 65, 76}};
  for (const int arch : {18, 50}) {
    for (const auto& [epochs, start_ramp, end_ramp] : published) {
      const std::string name =
          "rn" + std::to_string(arch) + "_" + std::to_string(epochs) + "_epochs.yaml";
      const Recipe recipe =
          load_recipe(test::source_dir() + "/configs/imagenet/" + name, {}, registries_);
      const TrainPlan plan = make_plan(requested_run(recipe), registries_, 1281167, 1000);
      EXPECT_EQ(plan.model.arch, "resnet" + std::to_string(arch));
      EXPECT_TRUE(plan.model.blurpool);
      EXPECT_EQ(plan.epochs, epochs);
      EXPECT_EQ(plan.global_batch_size, arch == 18 ? 1024 : 4096);
      EXPECT_EQ(plan.steps_per_epoch, arch == 18 ? 1251 : 312);
      EXPECT_EQ(plan.optimizer.options.flow(), arch == 18 ? "{momentum: 0.9, weight_decay: 5e-5}"
                                                          : "{momentum: 0.9, weight_decay: 1e-4}");
      EXPECT_EQ(plan.image_size_px.front(), 160);
      EXPECT_EQ(plan.image_size_px[static_cast<std::size_t>(start_ramp)], 160);
      EXPECT_EQ(plan.image_size_px[static_cast<std::size_t>(end_ramp)], 192);
      const double lr = arch == 18 ? 0.5 : 1.7;
      EXPECT_DOUBLE_EQ(plan.lr(0, 0), 1e-4 * lr);
      EXPECT_DOUBLE_EQ(plan.lr(2, 0), lr);
      EXPECT_NEAR(plan.lr(epochs - 1, plan.steps_per_epoch - 1),
                  lr / (epochs - 2) / static_cast<double>(plan.steps_per_epoch), 1e-12);
    }
  }
}

TEST_F(RecipeTest, CommandLineBeatsFileBeatsDefault) {
  const Recipe recipe = load("training: {epochs: 5, batch_size: 8}\n",
                             {"--training.epochs=7", "data.num_workers=3", "--lr.lr", "0.25"});
  EXPECT_EQ(recipe.config.training.epochs, 7);
  EXPECT_EQ(recipe.config.training.batch_size, 8);
  EXPECT_EQ(recipe.config.data.num_workers, 3);
  EXPECT_DOUBLE_EQ(recipe.config.lr.lr, 0.25);
  EXPECT_DOUBLE_EQ(recipe.config.training.label_smoothing, 0.1);
}

TEST_F(RecipeTest, AllMistakesAreReportedTogetherWithTheirLocations) {
  const std::string message = refusal(
      "training:\n  epochs: many\n  batchsize: 3\ndata:\n  num_workers: -1\n", {"--lr.lr=fast"});
  EXPECT_THAT(message, Names("r.yaml:2:11: training.epochs", "many"));
  EXPECT_THAT(message, Names("r.yaml:3:3: training.batchsize", "training.batch_size"));
  EXPECT_THAT(message, Names("r.yaml:5:16: data.num_workers", 0, "-1"));
  EXPECT_THAT(message, Names("lr.lr", "fast"));
}

TEST_F(RecipeTest, AKeyOutsideItsSectionIsRefusedExceptInTheRecordOfARun) {
  EXPECT_THAT(refusal("lr: {lr: 0.5}\ntraining.label_smoothing: 0.3\n"),
              Names("r.yaml:2:1: training.label_smoothing", "training: {label_smoothing: 0.3}"));
  // The other keys are checked as usual.
  EXPECT_THAT(refusal("lr.lr: 0.5\noptimizer: {beta1: 0.8}\ntraining.optimiser: lamb\n"),
              Names("r.yaml:1:1: lr.lr", "optimizer.beta1", "training.optimiser"));
  std::ofstream(folder_ / "copy.json") << R"({"training.label_smoothing": 0.3})";
  EXPECT_EQ(load_recipe(folder_ / "copy.json", {}, registries_).config.training.label_smoothing,
            0.3);
}

TEST_F(RecipeTest, KeysThatContradictEachOtherAreRefused) {
  EXPECT_THAT(refusal("resolution: {min_res: 200, max_res: 100}"),
              Names("resolution.min_res", 200, "resolution.max_res", 100));
  EXPECT_THAT(refusal("resolution: {start_ramp: 9, end_ramp: 3}"),
              Names("resolution.start_ramp", 9, "resolution.end_ramp", 3));
  EXPECT_THAT(refusal("model: {pretrained: 1}"), Names("model.pretrained", "model.weights"));
  EXPECT_THAT(refusal("model: {arch: resnet19}"), Names("model.arch", "resnet19", "resnet18"));
  EXPECT_THAT(refusal("training: {distributed: 1, global_batch_size: 10}\ndist: {world_size: 3}"),
              Names("training.global_batch_size", 10, 3));
  EXPECT_THAT(refusal("dist: {variable_update: parameter_server, grad_compression: bf16}"),
              Names("dist.grad_compression", "bf16"));
  EXPECT_THAT(refusal("training: {device: cpu, precision: fp16}"),
              Names("training.precision", "fp16"));
}

TEST_F(RecipeTest, KernelsAreFusedOnlyOnRequest) {
  const auto fused = [&](const std::string& yaml) {
    const Recipe recipe = load(yaml);
    return make_plan(requested_run(recipe), registries_, 1000, 10).model.fused_kernels;
  };
  EXPECT_FALSE(fused(""));
  EXPECT_FALSE(fused("model: {kernels: auto}\n"));
  EXPECT_FALSE(fused("model: {kernels: reference}\n"));
  EXPECT_TRUE(fused("model: {kernels: fused}\n"));
  EXPECT_THAT(refusal("model: {kernels: fast}\n"), Names("model.kernels", "fast", "fused"));
}

TEST_F(RecipeTest, GhostBatchesFitIntoAMicroBatchOfARank) {
  const std::string batches = "training: {batch_size: 64, micro_batches: 4}\n";
  const Recipe recipe = load(batches + "methods: [ghost_batch_norm: {size: 16}]\n");
  const TrainPlan plan = make_plan(requested_run(recipe), registries_, 1000, 10);
  EXPECT_EQ(plan.model.ghost_batch_size, 16);
  const auto described =
      describe_plan(requested_run(recipe), plan, recipe.resolved, /*per_step=*/false);
  EXPECT_EQ(described.at("model").at("ghost_batch_size"), 16);
  EXPECT_THAT(refusal(batches + "methods: [ghost_batch_norm: {size: 17}]\n"),
              Names("ghost_batch_norm", "size", 16, 17));
  const std::string ranks =
      "training: {global_batch_size: 64, distributed: 1}\ndist: {world_size: 4, sync_bn: 1}\n";
  EXPECT_THAT(refusal(ranks + "methods: [ghost_batch_norm: {size: 16}]\n"),
              Names("ghost_batch_norm", "dist.sync_bn", 4));
}

TEST_F(RecipeTest, ATargetThresholdSeparatesTheSmoothedTargets) {
  const auto recipe = [](const char* threshold, const char* smoothing, const char* more = "") {
    return fmt::format(
        "training: {{label_smoothing: {}}}\nmethods: [bce_loss: {{target_threshold: {}}}]\n{}",
        smoothing, threshold, more);
  };
  const char* const classes = "model: {num_classes: 10}\n";
  EXPECT_THAT(refusal(recipe("0", "0.1", classes)),
              Names("bce", "target_threshold", "training.label_smoothing", "0.01", "0.91"));
  EXPECT_THAT(refusal(recipe("0.95", "0.1", classes)),
              Names("bce", "target_threshold", "0.95", "training.label_smoothing", "0.01", "0.91"));
  EXPECT_THAT(
      refusal("training: {loss: bce}\nloss: {target_threshold: 0.001}\n" + std::string(classes)),
      Names("0.001", "training.label_smoothing", "0.1"))
      << "the default smoothing";
  for (const auto& [threshold, smoothing] :
       {std::pair{"0", "0"}, {"0.95", "0"}, {"0.2", "0.1"}, {"0.01", "0.1"}, {"-1", "0.1"}})
    EXPECT_NO_THROW((void)load(recipe(threshold, smoothing, classes))) << threshold;
  // The number of classes is known only with the dataset.
  const Recipe unknown = load(recipe("0", "0.1"));
  EXPECT_THROW((void)make_plan(requested_run(unknown), registries_, 1000, 10), ConfigError);
  EXPECT_NO_THROW((void)make_plan(requested_run(unknown), registries_, 0, 10, RecipeUse::evaluate));
}

TEST_F(RecipeTest, MistakesInTheSampleOrderAreReportedWithTheirLocations) {
  const std::string told = refusal(
      "data:\n"
      "  order: quasi_randon\n"
      "  filter: label <\n"
      "  subset: 5:3\n"
      "  shuffle_window_mb: 8MB\n"
      "  weights: [1, 2]\n"
      "  direct_io: 1\n");
  EXPECT_THAT(told, Names("r.yaml:2:10: data.order", "sequential", "quasi_random", "quasi_randon"));
  EXPECT_THAT(told, Names("r.yaml:4:11: data.subset", "5:3"));
  EXPECT_THAT(told, Names("r.yaml:5:22: data.shuffle_window_mb", "auto", "ffcv", "8MB"));
  EXPECT_THAT(told, testing::Not(Names("data.weights"))) << "the order may read it";
  EXPECT_THAT(told, Names("r.yaml:3:11: data.filter", "label <"));
  EXPECT_THAT(told, Names("r.yaml:7:14: data.direct_io", "data.in_memory: 0"));
  EXPECT_THAT(refusal("data: {order: weighted}"), Names("data.weights", "data.weight_field"));
}

TEST_F(RecipeTest, MethodsComeAfterTheLegacyKeysInTheirOwnOrder) {
  const Recipe recipe = load("methods: [ema: {decay: 0.9}, gradient_clipping]\n");
  EXPECT_EQ(names(recipe),
            (std::vector<std::string>{"channels_last", "progressive_resize", "label_smoothing",
                                      "ema", "gradient_clipping"}));
}

TEST_F(RecipeTest, TheLossIsTheRecipesUnlessAMethodSetsAnother) {
  const auto loss = [&](const std::string& text) {
    return make_plan(requested_run(load(text)), registries_, 1000, 10).loss.name;
  };
  EXPECT_EQ(loss(""), "cross_entropy");
  EXPECT_EQ(loss("training: {loss: bce}\n"), "bce");
  EXPECT_EQ(loss("methods: [bce_loss]\n"), "bce");
  registries_.losses.add("own", "as a plug-in adds it", [] { return std::unique_ptr<Loss>(); });
  EXPECT_EQ(loss("training: {loss: own}\n"), "own");
  EXPECT_THAT(refusal("training: {loss: own}\nmethods: [bce_loss]\n"),
              Names("bce_loss", "training.loss", "own"));
  EXPECT_THAT(refusal("training: {loss: unknown}\n"),
              Names("training.loss", "unknown", "cross_entropy"));
}

TEST_F(RecipeTest, AListedMethodReplacesADefaultAndContradictsAGivenKey) {
  const Recipe recipe = load("methods: [label_smoothing: {smoothing: 0.3}]\n");
  EXPECT_EQ(make_plan(requested_run(recipe), registries_, 1000, 10).loss.options.flow(),
            "{label_smoothing: 0.3}");
  EXPECT_THAT(refusal("training: {label_smoothing: 0.2}\nmethods: [label_smoothing]\n"),
              Names("label_smoothing", "training.label_smoothing"));
  EXPECT_THAT(refusal("methods: [ema, ema]\n"), Names("r.yaml:1:16", "methods[1]", "ema"));
  EXPECT_THAT(refusal("methods: [emma]\n"), Names("emma", "ema"));
  EXPECT_THAT(refusal("methods: [ema: {decai: 1}]\n"), Names("decai", "decay"));
}

TEST_F(RecipeTest, PartsCheckTheirOwnOptionsBeforeAnythingIsOpened) {
  EXPECT_THAT(refusal("model: {params: {zero_init: 1}}\n"),
              Names("zero_init", "zero_init_residual"));
  EXPECT_THAT(refusal("methods: [progressive_resize: {min_res: 200, max_res: 100}]\n"),
              Names("progressive_resize", "min_res", 200, "max_res", 100));
  EXPECT_THAT(refusal("lr: {step_ratio: 0, lr_schedule_type: step}\n"),
              Names("r.yaml:1:18: lr.step_ratio", 0));
}

TEST_F(RecipeTest, AModelOfOneImageSizeRefusesMethodsThatMakeImagesSmaller) {
  const std::string recipe =
      "model: {arch: layers, num_classes: 2,\n"
      "  params: {image_size: 32, layers: [flatten, linear]}}\n"
      "resolution: {min_res: 32, max_res: 32}\n"
      "validation: {resolution: 32}\n";
  EXPECT_NO_THROW(static_cast<void>(load(recipe)));
  EXPECT_NO_THROW(static_cast<void>(
      load(recipe + "methods: [batch_resize: {initial_scale: 1}, selective_backprop]\n")));
  EXPECT_THAT(refusal(recipe + "methods: [batch_resize]\n"), Names("'layers'", 16, 32));
  EXPECT_THAT(refusal(recipe + "methods: [selective_backprop: {scale_factor: 0.25}]\n"),
              Names("'layers'", 8, 32));
  EXPECT_THAT(
      refusal(recipe + "methods: [batch_resize, selective_backprop: {scale_factor: 0.5}]\n"),
      Names("'layers'", 8, 16, 32));
}

TEST_F(RecipeTest, OptimisersCheckTheirOptionsBeforeAnythingIsOpened) {
  EXPECT_THAT(refusal("training: {optimizer: adamw}\noptimizer: {nesterov: true}\n"),
              Names("optimizer.nesterov", "adamw", "sgd", "sgdw", "lars"));
  EXPECT_THAT(refusal("training: {optimizer: sgdw}\nlr: {lr: 0}\n"), Names("sgdw", "lr.lr"));
  EXPECT_THAT(refusal("training: {optimizer: lamb}\noptimizer: {beta2: 1}\n"),
              Names("optimizer.beta2", 1));
}

TEST_F(RecipeTest, AKeyThatNothingReadsIsRefusedWithWhatWouldReadIt) {
  EXPECT_THAT(refusal("lr: {final_lr: 0.1}\n"),
              Names("r.yaml:1:16", "lr.final_lr", "lr.lr_schedule_type", "cyclic", "cosine"));
  EXPECT_THAT(refusal("", {"--optimizer.beta1=0.8"}),
              Names("optimizer.beta1", "training.optimizer", "sgd", "adamw", "lamb"));
  EXPECT_THAT(refusal("data: {cache_mb: 100}\n"), Names("data.cache_mb", "data.in_memory"));
  EXPECT_THAT(refusal("data: {weights: [1, 2]}\n"),
              Names("data.weights", "data.order: random", "data.order: weighted"));
  EXPECT_THAT(refusal("data: {shuffle_window_mb: 100}\n"),
              Names("data.shuffle_window_mb", "data.order", "quasi_random"));
  EXPECT_THAT(refusal("loss: {sum_classes: true}\n"), Names("loss.sum_classes", "bce"));
}

TEST_F(RecipeTest, KeysThatNothingReadsAreWarningsWhereAsked) {
  std::ofstream(folder_ / "r.yaml") << "lr: {final_lr: 0.1}\ndata: {cache_mb: 100}\n";
  testing::internal::CaptureStderr();
  const Recipe recipe =
      load_recipe(folder_ / "r.yaml", {}, registries_, RecipeUse::train, UnreadKeys::warning);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Names("lr.final_lr", "data.cache_mb"));
  ASSERT_EQ(recipe.unread_keys.size(), 2U);
  EXPECT_EQ(recipe.unread_keys[0].key, "lr.final_lr");
  EXPECT_EQ(recipe.unread_keys[0].origin.line, 1);
  EXPECT_THAT(recipe.unread_keys[0].reason, Names("cosine"));
  EXPECT_EQ(recipe.unread_keys[1].key, "data.cache_mb");
}

TEST_F(RecipeTest, KeysThatOnlyMoreRanksReadAreKeptForARunOfOne) {
  const std::vector<UnreadKey> keys = load("dist: {zero: 1, world_size: 2}\n").unread_by_one_rank;
  ASSERT_EQ(keys.size(), 1U);
  EXPECT_EQ(keys[0].key, "dist.zero");
  EXPECT_EQ(keys[0].origin.line, 1);
}

TEST_F(RecipeTest, KeysOfTrainingOnTheCommandLineOfAnEvaluationAreWarnings) {
  std::ofstream(folder_ / "r.yaml") << "lr: {lr: 0.1}\n";
  Diagnostics diagnostics;
  const std::vector<Override> overrides = {
      {"checkpoint.keep_best", parse_override("2", {"command line", 0, 0}, diagnostics)}};
  testing::internal::CaptureStderr();
  static_cast<void>(load_recipe(folder_ / "r.yaml", overrides, registries_, RecipeUse::evaluate));
  const std::string warnings = testing::internal::GetCapturedStderr();
  EXPECT_THAT(warnings, Names("checkpoint.keep_best"));
  EXPECT_THAT(warnings, testing::Not(Names("lr.lr")));
}

TEST_F(RecipeTest, KeysOfPublishedRecipesThatNothingReadsAreWarnings) {
  testing::internal::CaptureStderr();
  static_cast<void>(
      load("training: {optimizer: adamw, momentum: 0.9}\n"
           "lr: {lr_schedule_type: cosine, lr_peak_epoch: 2}\n"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              Names("training.momentum", "adamw", "lr.lr_peak_epoch", "cyclic"));
}

TEST_F(RecipeTest, LabelSmoothingWithoutClassLabelsIsRejectedWithItsLocation) {
  EXPECT_THAT(refusal("training: {loss: mse, label_smoothing: 0.2}\n"),
              Names("r.yaml:1:40: training.label_smoothing", "training.loss: mse", "0.2"));
  EXPECT_THAT(refusal("training: {loss: mse}\n", {"--training.label_smoothing=0.1"}),
              Names("command line: training.label_smoothing", "training.loss: mse", "0.1"));
}

TEST_F(RecipeTest, FlipTtaWithoutEffectIsAWarningIfItIsGiven) {
  const auto warnings = [&](const std::string& text) {
    testing::internal::CaptureStderr();
    static_cast<void>(load(text));
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(warnings("training: {loss: mse}\nvalidation: {lr_tta: true}\n"),
              Names("warning", "r.yaml:2:22", "validation.lr_tta", "training.loss: mse"));
  EXPECT_EQ(warnings("training: {loss: mse}\n"), "");
  EXPECT_EQ(warnings("training: {loss: mse}\nvalidation: {lr_tta: false}\n"), "");
  EXPECT_EQ(warnings("training: {loss: multi_label_bce}\nvalidation: {lr_tta: true}\n"), "");
}

TEST_F(RecipeTest, ARunTooShortForItsScheduleOrItsImageSizesIsAWarning) {
  const auto warnings = [&](const std::string& text, RecipeUse use = RecipeUse::train) {
    testing::internal::CaptureStderr();
    static_cast<void>(load_recipe(file(text), {}, registries_, use));
    return testing::internal::GetCapturedStderr();
  };
  const std::string peak = "training: {epochs: 3}\nlr: {lr_peak_epoch: 4}\n";
  EXPECT_THAT(warnings(peak),
              Names("warning", "r.yaml:2:21", "lr.lr_peak_epoch", 4, "training.epochs", 3));
  EXPECT_EQ(warnings(peak, RecipeUse::evaluate), "");
  EXPECT_THAT(warnings("training: {epochs: 2}\n"), Names("lr.lr_peak_epoch", 2)) << "the default";
  EXPECT_EQ(warnings("training: {epochs: 3}\n"), "");
  EXPECT_EQ(warnings("training: {epochs: 1}\nlr: {lr_schedule_type: one_cycle}\n"), "");
  EXPECT_THAT(warnings("training: {epochs: 12}\nlr: {lr_peak_epoch: 7}\n"
                       "methods: [scale_schedule: {ratio: 0.5}]\n"),
              Names("lr.lr_peak_epoch", 7, "training.epochs", 12, 6));
  for (const std::string schedule : {"cosine", "poly", "constant"}) {
    const auto warmup = [&](int epochs, const std::string& methods = "") {
      return warnings(
          fmt::format("training: {{epochs: 12}}\n"
                      "lr: {{lr_schedule_type: {}, warmup_epochs: {}}}\n{}",
                      schedule, epochs, methods));
    };
    EXPECT_THAT(warmup(12),
                Names("warning", "r.yaml:2", "lr.warmup_epochs", "training.epochs", 12));
    EXPECT_EQ(warmup(11), "") << schedule;
    EXPECT_EQ(warmup(0), "") << schedule;
    const std::string shorter = "methods: [scale_schedule: {ratio: 0.5}]\n";
    EXPECT_THAT(warmup(6, shorter), Names("lr.warmup_epochs", "training.epochs", 12, 6));
    EXPECT_EQ(warmup(5, shorter), "") << schedule;
  }
  const std::string sizes =
      "training: {epochs: 5}\nlr: {lr_peak_epoch: 1}\n"
      "resolution: {min_res: 64, max_res: 192, end_ramp: ";
  EXPECT_THAT(warnings(sizes + "8}\n"),
              Names("warning", "r.yaml:3", "resolution.end_ramp", 8, "training.epochs", 5, 192));
  EXPECT_EQ(warnings(sizes + "4}\n"), "");
  EXPECT_EQ(warnings(sizes + "4}\nmethods: [scale_schedule: {ratio: 0.5}]\n"), "");
}

TEST_F(RecipeTest, AnOptionHasTheNamesOfBothItsPartAndFfcvImagenet) {
  const Recipe recipe = load("optimizer: {momentum: 0.5, weight_decay: 0.1}\n");
  EXPECT_EQ(recipe.resolved.at("training.momentum"), 0.5);
  EXPECT_EQ(make_plan(requested_run(recipe), registries_, 0, 10).optimizer.options.flow(),
            "{momentum: 0.5, weight_decay: 0.1}");
  EXPECT_THAT(refusal("optimizer: {momentum: 0.5}\ntraining: {momentum: 0.9}\n"),
              Names("training.momentum", "optimizer.momentum"));
  EXPECT_THAT(refusal("training: {momentum: 0.9}\noptimizer: {momentum: 0.5}\n"),
              Names("training.momentum", "optimizer.momentum"));
}

TEST_F(RecipeTest, OptimiserAndScheduleKeysReachThePlan) {
  const Recipe recipe = load(
      "training: {optimizer: lamb, epochs: 4, batch_size: 10}\n"
      "optimizer: {beta1: 0.8, beta2: 0.95, epsilon: 1e-6}\n"
      "lr: {lr: 0.3, lr_schedule_type: cosine, warmup_epochs: 1, final_lr: 0.1}\n");
  const TrainPlan plan = make_plan(requested_run(recipe), registries_, 40, 10);
  EXPECT_EQ(plan.optimizer.name, "lamb");
  EXPECT_EQ(plan.optimizer.options.flow(), "{beta1: 0.8, beta2: 0.95, epsilon: 1e-6}");
  EXPECT_DOUBLE_EQ(plan.peak_lr, 0.3);
  EXPECT_DOUBLE_EQ(plan.lr(0, 2), 0.15) << "halfway through the warm-up";
  EXPECT_DOUBLE_EQ(plan.lr(2, 2), 0.2) << "halfway through the cosine";
  EXPECT_DOUBLE_EQ(plan.schedule->lr(4), 0.1);
  const TrainPlan poly = make_plan(
      requested_run(load("lr: {lr: 1, lr_schedule_type: poly, power: 3}\ntraining: {epochs: 2}\n")),
      registries_, 0, 10);
  EXPECT_DOUBLE_EQ(poly.schedule->lr(1), 0.125);
  const TrainPlan cycle = make_plan(
      requested_run(load("lr: {lr: 1, lr_schedule_type: one_cycle, pct_start: 0.5, div_factor: 4, "
                         "final_div_factor: 10}\ntraining: {epochs: 2}\n")),
      registries_, 0, 10);
  EXPECT_DOUBLE_EQ(cycle.schedule->lr(0), 0.25);
  EXPECT_DOUBLE_EQ(cycle.schedule->lr(1), 1);
  EXPECT_DOUBLE_EQ(cycle.schedule->lr(2), 0.025);
}

TEST_F(RecipeTest, TheRateIsForTheGlobalBatchUnlessAReferenceBatchIsGiven) {
  const std::string ranks = "training: {batch_size: 512, distributed: 1}\ndist: {world_size: 8}\n";
  EXPECT_DOUBLE_EQ(
      make_plan(requested_run(load(ranks + "lr: {lr: 1.7}\n")), registries_, 0, 10).schedule->lr(2),
      1.7);
  const Recipe recipe = load(ranks + "lr: {lr: 0.1, reference_batch_size: 256}\n");
  const TrainPlan plan = make_plan(requested_run(recipe), registries_, 0, 10);
  EXPECT_DOUBLE_EQ(plan.schedule->lr(2), 0.1 * 4096 / 256);
  EXPECT_DOUBLE_EQ(plan.peak_lr, 0.1 * 4096 / 256);
  EXPECT_EQ(describe_plan(requested_run(recipe), plan, recipe.resolved, false).at("lr").at("peak"),
            0.1 * 4096 / 256);
}

TEST_F(RecipeTest, SwitchingALegacyKeyOffContradictsTheListToo) {
  EXPECT_THAT(refusal("methods: [label_smoothing]\n", {"--training.label_smoothing=0"}),
              Names("label_smoothing", "training.label_smoothing"));
}

TEST_F(RecipeTest, MethodsCanBeGivenOnTheCommandLine) {
  EXPECT_EQ(names(load("", {"--methods=[ema: {decay: 0.9}]"})).back(), "ema");
}

TEST_F(RecipeTest, SmallImagesNeverRoundToNothing) {
  const Recipe recipe =
      load("resolution: {min_res: 8, max_res: 28, end_ramp: 10}\ntraining: {epochs: 12}\n");
  for (const std::int64_t size :
       make_plan(requested_run(recipe), registries_, 1000, 10).image_size_px) {
    EXPECT_GE(size, 8);
    EXPECT_LE(size, 32) << "28 px, rounded as by ffcv-imagenet";
  }
}

TEST_F(RecipeTest, PipelineMistakesAreReportedToo) {
  EXPECT_THAT(refusal("pipeline: {train: [centre_crop]}\n"),
              Names("pipeline.train", "centre_crop", "center_crop"));
}

TEST_F(RecipeTest, TransformsThatCannotTakeAnImageSizeAreReportedBeforeTheStart) {
  EXPECT_THAT(refusal("pipeline: {train: [cutout: {crop_size: 100}]}\n"
                      "resolution: {min_res: 96, max_res: 128}\n"),
              Names("pipeline.train[0]", "crop_size", "96 x 96", 100));
  EXPECT_THAT(refusal("pipeline: {val: {image: [cutout: {crop_size: 300}]}}\n"),
              Names("pipeline.val.image[0]", "crop_size", 224, 300));
}

TEST_F(RecipeTest, AnEvaluationOnlyChecksTheImageSizesOfItsOwnPipeline) {
  const std::string path = file("pipeline: {train: [cutout: {crop_size: 300}]}\n");
  EXPECT_NO_THROW(static_cast<void>(load_recipe(path, {}, registries_, RecipeUse::evaluate)));
  EXPECT_THROW(static_cast<void>(load_recipe(path, {}, registries_)), ConfigError);
}

TEST_F(RecipeTest, PipelinesMayNameTheirOutputs) {
  const Recipe recipe =
      load_recipe(test::source_dir() + "/configs/imagenette/rn18_augmented.yaml", {}, registries_);
  std::vector<std::string> names;
  for (const data::OutputSpec& output : recipe.train_pipeline.outputs) names.push_back(output.name);
  EXPECT_THAT(names, testing::ElementsAre("image", "view2", "label", "ids"));
  EXPECT_EQ(recipe.train_pipeline.outputs[1].image.steps.size(), 4U);
  EXPECT_TRUE(recipe.val_pipeline.outputs.empty());
}

TEST_F(RecipeTest, ResolvedRecipeNamesEveryKey) {
  const auto resolved = load("training: {epochs: 3}\n").resolved;
  EXPECT_EQ(resolved.at("training.epochs"), 3);
  EXPECT_EQ(resolved.at("validation.resolution"), 224);
  EXPECT_EQ(resolved.at("methods").size(), 3U);
}

TEST(TakeOverridesTest, TellsOverridesFromOptions) {
  std::vector<std::string> args = {"c.yaml", "--a.b=1", "--json", "a.c=x=y",
                                   "-o",     "out.npy", "--a.d",  "-0.5"};
  const auto overrides = take_overrides(args);
  EXPECT_EQ(args, (std::vector<std::string>{"c.yaml", "--json", "-o", "out.npy"}));
  ASSERT_EQ(overrides.size(), 3U);
  EXPECT_EQ(overrides[1].key, "a.c");
  EXPECT_EQ(overrides[1].value.scalar, "x=y");
  EXPECT_EQ(overrides[2].value.scalar, "-0.5");
}

TEST(TakeOverridesTest, AMissingValueIsAnErrorAndNotTheNextOption) {
  std::vector<std::string> args = {"--a.b"};
  EXPECT_THROW(static_cast<void>(take_overrides(args)), ConfigError);
  // As in `--logging.run_id $ID --dry-run` with an empty variable.
  args = {"c.yaml", "--logging.run_id", "--dry-run"};
  EXPECT_THAT([&] { static_cast<void>(take_overrides(args)); },
              testing::ThrowsMessage<ConfigError>(test::Names("--logging.run_id", "--dry-run")));
  args = {"--logging.run-id=--dry-run"};
  EXPECT_EQ(take_overrides(args).at(0).value.scalar, "--dry-run");
}

}  // namespace
}  // namespace precast::tools
