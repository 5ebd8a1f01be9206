// Compares training steps with fused SGD, whose kernels unscale, check, clip and apply the
// gradients, with the same steps with libtorch's ops. The kernels run on the host.
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "framework/engine/checkpointer.h"
#include "recipes/register.h"
#include "tests/framework/engine/short_training.h"
#include "tests/recipes/fused_device.h"
#include "tests/recipes/make_method.h"
#include "tests/support/temporary_folder.h"

namespace precast::test {
namespace {

using engine::differences;
using engine::Mode;
using engine::ShortTraining;
using engine::TrainingOptions;
using testing::IsEmpty;

constexpr int kSteps = 3;

class FusedStepTest : public ::testing::Test {
 protected:
  static TrainingOptions fused(TrainingOptions options) {
    std::string& keys = options.optimizer_options;
    keys = keys.empty() ? "{kernels: fused}" : "{kernels: fused, " + keys.substr(1);
    return options;
  }
  /// Names of tensors that differ by more than rounding errors, which grow with each step. The
  /// scale of the scaler and integers must be equal.
  static std::vector<std::string> unlike(const ShortTraining& found,
                                         const ShortTraining& expected) {
    std::vector<std::string> names;
    const std::vector<NamedTensor> a = found.state(), b = expected.state();
    EXPECT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      const bool exact = !a[i].tensor.is_floating_point() || a[i].name == "scale";
      const double tolerance = exact ? 0 : 2e-5;
      if (a[i].name != b[i].name || !a[i].tensor.allclose(b[i].tensor, tolerance, tolerance))
        names.push_back(a[i].name);
    }
    return names;
  }
  /// Compares `options.steps` steps. @param at_once whether the kernels also unscale, check or
  /// clip, instead of only updating
  static void expect_alike(const TrainingOptions& options, bool at_once) {
    ShortTraining expected(options, Mode::plain);
    CountedKernels::reset();
    expected.run();
    EXPECT_EQ(CountedKernels::calls(), FusedCalls());
    ShortTraining found(fused(options), Mode::plain);
    found.run();
    EXPECT_EQ(CountedKernels::calls(), (FusedCalls{.gradient_norm = at_once ? options.steps : 0,
                                                   .sgd_step = options.steps}));
    EXPECT_THAT(unlike(found, expected), IsEmpty());
  }
  /// Expects that replayed steps give bitwise identical results.
  static void expect_recorded(const TrainingOptions& options) {
    ShortTraining plain(fused(options), Mode::plain), recorded(fused(options), Mode::recorded);
    plain.run();
    CountedKernels::reset();
    recorded.run();
    EXPECT_GT(CountedKernels::calls().sgd_step, 0);
    EXPECT_EQ(recorded.replays(), options.steps - engine::StepGraph::kWarmUps);
    EXPECT_THAT(differences(recorded, plain), IsEmpty());
  }
  /// Makes the gradients in fp16 infinite in every second step.
  static void make_infinite(int step, Batch& batch) {
    if (step % 2 == 1) batch.images().mul_(1e30);
  }
  static double scale_of(const ShortTraining& training) {
    for (const NamedTensor& entry : training.state())
      if (entry.name == "scale") return entry.tensor.item<double>();
    return 0;
  }

  static inline const std::vector<std::pair<std::string, std::string>> kClipping = {
      {"gradient_clipping", "{max_norm: 0.01}"}};
  const CountedKernels kernels_;
};

TEST_F(FusedStepTest, UpdatesWithoutScaleAndClippingInOneLaunch) {
  expect_alike({.steps = kSteps}, /*at_once=*/false);
  expect_alike({.optimizer_options = "{nesterov: true, weight_decay: 0.01}", .steps = kSteps},
               /*at_once=*/false);
}

TEST_F(FusedStepTest, ClipsAsTheMethod) {
  expect_alike({.methods = kClipping, .steps = kSteps}, /*at_once=*/true);
  expect_alike({.optimizer_options = "{momentum: 0, weight_decay: 0.01, decay_groups: clean}",
                .methods = {{"gradient_clipping", "{max_norm: 1000}"}},
                .micro_batches = 2,
                .steps = kSteps},
               /*at_once=*/true);
}

TEST_F(FusedStepTest, UnscalesAsTheScaler) {
  for (const auto& methods : {decltype(kClipping)(), kClipping}) {
    TrainingOptions options{.model = "linear",
                            .methods = methods,
                            .precision = Precision::fp16,
                            .micro_batches = 2,
                            .steps = kSteps};
    expect_alike(options, /*at_once=*/true);
    options.edit = make_infinite;
    expect_alike(options, /*at_once=*/true);
  }
}

TEST_F(FusedStepTest, AnInfiniteGradientSkipsTheStepAndHalvesTheScale) {
  TrainingOptions options{.model = "linear", .methods = kClipping, .precision = Precision::fp16};
  options.edit = make_infinite;
  ShortTraining training(fused(options), Mode::plain), before(fused(options), Mode::plain);
  before.run_to(1);
  training.run_to(2);
  EXPECT_EQ(scale_of(training), scale_of(before) / 2);
  EXPECT_THAT(differences(training, before),
              testing::UnorderedElementsAre("scale", "growth_tracker", "losses"));
}

TEST_F(FusedStepTest, SkipsWhatIsNotFinite) {
  TrainingOptions options{.methods = kClipping, .skip_nonfinite = true, .steps = kSteps + 1};
  options.edit = [](int step, Batch& batch) {
    if (step == 1) batch.images().fill_(std::numeric_limits<double>::quiet_NaN());
  };
  expect_alike(options, /*at_once=*/true);
}

TEST_F(FusedStepTest, LeavesFrozenParametersAlone) {
  expect_alike(
      {.methods = {{"layer_freezing", "{freeze_start: 0.2, freeze_level: 0.5}"}, kClipping.front()},
       .steps = 8},
      /*at_once=*/true);
}

TEST_F(FusedStepTest, TakesBothPassesOfSamAndAveragesAsBefore) {
  expect_alike(
      {.methods = {{"sam", "{}"}, {"ema", "{decay: 0.5}"}, kClipping.front()}, .steps = kSteps},
      /*at_once=*/true);
}

/// The kernels clip the norm over all gradients, once. Other clipping, or a second clipping, runs
/// before the update.
TEST_F(FusedStepTest, GradientsThatAMethodChangesAreOnlyUpdatedFrom) {
  expect_alike({.methods = {{"adaptive_gradient_clipping", "{}"}, kClipping.front()},
                .skip_nonfinite = true,
                .steps = kSteps},
               /*at_once=*/false);
  expect_alike({.methods = {kClipping.front(), kClipping.front()}, .steps = kSteps},
               /*at_once=*/false);
}

/// Only this rank can tell the others whether the gradients are finite, and must do so before the
/// update.
TEST_F(FusedStepTest, GradientsOnOneRankAreUnscaledFirst) {
  expect_alike({.model = "linear",
                .precision = Precision::fp16,
                .steps = kSteps,
                .gradients_on_one_rank = true},
               /*at_once=*/false);
}

TEST_F(FusedStepTest, OnlyAdaptiveClippingMustBeCalled) {
  MethodRegistry registry("method");
  recipes::register_methods(registry);
  std::vector<std::string> called, clipping;
  for (const std::string& name : registry.names()) {
    const std::optional<double> bound = make_method(name)->gradient_bound();
    if (!bound) called.push_back(name);
    if (bound && *bound != Method::kUnbounded) clipping.push_back(name);
  }
  EXPECT_THAT(called, testing::ElementsAre("adaptive_gradient_clipping"));
  EXPECT_THAT(clipping, testing::ElementsAre("gradient_clipping"));
}

TEST_F(FusedStepTest, IsRecordedWithTheRateOfEachStep) {
  const int steps = engine::StepGraph::kWarmUps + 4;
  expect_recorded({.steps = steps});
  expect_recorded({.optimizer_options = "{nesterov: true}", .steps = steps});
  expect_recorded({.methods = kClipping, .skip_nonfinite = true, .steps = steps});
  expect_recorded({.model = "linear",
                   .methods = kClipping,
                   .precision = Precision::fp16,
                   .micro_batches = 2,
                   .steps = steps,
                   .edit = make_infinite});
}

/// There are two recordings, with separate gradients.
TEST_F(FusedStepTest, IsRecordedForEachImageSize) {
  const int steps = 3 * (engine::StepGraph::kWarmUps + 3);
  TrainingOptions options{.methods = kClipping, .steps = steps};
  options.size_px = [](int step) { return 32 + 16 * (step % 2); };
  ShortTraining plain(fused(options), Mode::plain), recorded(fused(options), Mode::recorded);
  plain.run();
  recorded.run();
  EXPECT_EQ(recorded.log().recordings, 2);
  EXPECT_EQ(recorded.replays(), steps - 2 * engine::StepGraph::kWarmUps);
  EXPECT_THAT(differences(recorded, plain), IsEmpty());
}

/// Trains kSteps more steps of the run in `folder`.
void continue_run(ShortTraining& training, const std::filesystem::path& folder) {
  engine::Checkpointer checkpointer({.folder = folder}, training.checkpoint_parts(), {},
                                    [](const nlohmann::ordered_json& /*saved*/) {});
  checkpointer.attach(training.scaler(), {});
  engine::TrainState state;
  state.loss_sum = at::zeros({}, at::kDouble);
  state.loss_count = at::zeros({}, at::kDouble);
  const bool begun = !std::filesystem::is_empty(folder);
  EXPECT_EQ(checkpointer.resume(state), begun);
  training.go_to(state.global_step);
  state.global_step += kSteps;
  training.run_to(static_cast<int>(state.global_step));
  EXPECT_TRUE(checkpointer.save(state, std::nullopt));
  checkpointer.finish();
}

/// The state goes through checkpoints on disk.
TEST_F(FusedStepTest, ARunResumesWithOtherKernelsAndBack) {
  for (const auto precision : {Precision::fp32, Precision::fp16}) {
    TrainingOptions options{.methods = kClipping, .precision = precision, .steps = 3 * kSteps};
    if (precision == Precision::fp16) options.model = "linear";
    ShortTraining expected(options, Mode::plain);
    expected.run();
    ShortTraining first(options, Mode::plain), second(fused(options), Mode::plain),
        third(options, Mode::plain);
    const TemporaryFolder folder;
    std::vector<int> launches;
    for (ShortTraining* training : {&first, &second, &third}) {
      CountedKernels::reset();
      continue_run(*training, folder.path());
      launches.push_back(CountedKernels::calls().sgd_step);
    }
    EXPECT_THAT(launches, testing::ElementsAre(0, kSteps, 0));
    // Each of the three trainings has summed only the losses of the steps that it ran.
    EXPECT_THAT(unlike(third, expected), testing::ElementsAre("loss_sum"));
  }
}

}  // namespace
}  // namespace precast::test
