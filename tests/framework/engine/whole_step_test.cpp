// Steps that are recorded as a whole have the same results, bit for bit, as steps without a
// recording.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "framework/core/error.h"
#include "tests/framework/engine/short_training.h"

namespace precast::engine {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kWarmUps = StepGraph::kWarmUps;
constexpr int kReplays = 4;
constexpr int kSteps = kWarmUps + kReplays;

/// An optimiser with a deliberate fault: p -= lr * momentum, where momentum = momentum / 2 +
/// gradient.
class FaultyOptimizer final : public Optimizer {
 public:
  enum class Fault { reads_lr_on_host, ignores_lr_tensor, creates_moments_late };

  FaultyOptimizer(Fault fault, const std::vector<NamedTensor>& parameters)
      : fault_(fault), parameters_(parameters) {}

  void step(double lr, const std::optional<Scaled>& /*scaled*/) override { update(lr); }
  [[nodiscard]] bool takes_lr_tensor() const override { return true; }
  void step_with(const at::Tensor& lr, const std::optional<Scaled>& /*scaled*/) override {
    if (fault_ == Fault::ignores_lr_tensor) {
      update(host_lr_ = host_lr_ / 2);
    } else if (fault_ == Fault::reads_lr_on_host) {
      update(lr.item<double>());
    } else {
      update(lr);
    }
  }

 private:
  template <typename Rate>
  void update(const Rate& lr) {
    const at::NoGradGuard no_grad;
    ++steps_;
    for (const NamedTensor& parameter : parameters_) {
      at::Tensor& moment = moments_[parameter.name];
      const bool first = fault_ == Fault::creates_moments_late && steps_ == kWarmUps + 1;
      if (!moment.defined() || first) moment = at::zeros_like(parameter.tensor);
      moment.mul_(0.5).add_(parameter.tensor.grad());
      parameter.tensor.detach().sub_(moment * lr);
    }
  }

  Fault fault_;
  std::vector<NamedTensor> parameters_;
  std::map<std::string, at::Tensor> moments_;
  double host_lr_ = 0.5;
  int steps_ = 0;
};

void expect_same(const TrainingOptions& options, Mode reference = Mode::plain,
                 std::int64_t replays = kReplays) {
  ShortTraining expected(options, reference), found(options, Mode::recorded);
  expected.run();
  found.run();
  EXPECT_EQ(found.replays(), replays);
  EXPECT_THAT(differences(found, expected), IsEmpty());
}

class WholeStepOfEachOptimizer : public ::testing::TestWithParam<std::string> {};

TEST_P(WholeStepOfEachOptimizer, UpdatesAsWithoutARecording) {
  // If the rate is a tensor, lamb's update has one more rounding.
  const Mode reference = GetParam() == "lamb" ? Mode::unrecorded : Mode::plain;
  for (const bool skip_nonfinite : {false, true}) {
    SCOPED_TRACE(skip_nonfinite);
    expect_same({.optimizer = GetParam(), .skip_nonfinite = skip_nonfinite}, reference);
  }
}

TEST_P(WholeStepOfEachOptimizer, UpdatesInFp16AsWithoutARecording) {
  const Mode reference = GetParam() == "lamb" ? Mode::unrecorded : Mode::plain;
  expect_same({.model = "linear", .optimizer = GetParam(), .precision = Precision::fp16},
              reference);
}

INSTANTIATE_TEST_SUITE_P(WholeStep, WholeStepOfEachOptimizer,
                         ::testing::Values("sgd", "sgdw", "adamw", "lars", "lamb"),
                         [](const auto& name) { return name.param; });

TEST(WholeStep, ResNet) {
  expect_same({.model = "resnet18", .micro_batches = 2, .skip_nonfinite = true});
}

TEST(WholeStep, NesterovAndNoMomentum) {
  expect_same({.optimizer_options = "{nesterov: true}"});
  expect_same({.optimizer_options = "{momentum: 0}"});
}

TEST(WholeStep, MicroBatchesAreAccumulated) {
  expect_same({.micro_batches = 2});
  expect_same({.model = "linear", .precision = Precision::fp16, .micro_batches = 4});
}

TEST(WholeStep, MethodsWithAndWithoutGradientHooks) {
  expect_same({.methods = {{"gradient_clipping", "{max_norm: 0.5}"}}});
  expect_same({.methods = {{"adaptive_gradient_clipping", "{}"}}});
  expect_same({.methods = {{"ema", "{}"}, {"mixup", "{}"}, {"label_smoothing", "{}"}}});
  expect_same(
      {.model = "resnet18", .methods = {{"stochastic_depth", "{drop_rate: 0.5, mode: sample}"}}});
}

TEST(WholeStep, Bf16) {
  expect_same({.precision = Precision::bf16});
}

/// If a recorded step has infinite gradients, it lowers the scale of fp16 and changes no weight.
TEST(WholeStep, TheScaleFallsInReplays) {
  const TrainingOptions options{
      .model = "linear", .precision = Precision::fp16, .edit = [](int step, Batch& batch) {
        if (step % 2 == 1) batch.images().mul_(1e30);
      }};
  ShortTraining expected(options, Mode::plain), found(options, Mode::recorded);
  expected.run();
  found.run();
  EXPECT_THAT(differences(found, expected), IsEmpty());
  for (const NamedTensor& entry : found.state()) {
    if (entry.name != "scale") continue;
    EXPECT_LT(entry.tensor.item<double>(), 65536.0 / 4);
  }
}

TEST(WholeStep, AStepThatIsNotFiniteIsSkippedInAReplay) {
  TrainingOptions options{.skip_nonfinite = true};
  options.edit = [](int step, Batch& batch) {
    if (step == kSteps - 1) batch.images().fill_(std::numeric_limits<double>::quiet_NaN());
  };
  ShortTraining found(options, Mode::recorded), before(options, Mode::recorded);
  found.run();
  before.run_to(kSteps - 1);
  std::vector<std::string> changed = differences(found, before);
  // Batch norms count the batches of skipped steps, too.
  std::erase_if(changed,
                [](const std::string& name) { return name.ends_with("num_batches_tracked"); });
  EXPECT_THAT(changed, testing::ElementsAre("losses"));
  EXPECT_EQ(found.replays(), kReplays);
  EXPECT_EQ(before.take_skipped_steps(), 0);
  EXPECT_EQ(found.take_skipped_steps(), 1);
  expect_same(options);
}

/// A run with several ranks has 11 warm-ups.
TEST(WholeStep, SaysWhenTheFirstReplayIs) {
  for (const int warm_ups : {kWarmUps, 11}) {
    ShortTraining training({.model = "linear", .warm_ups = warm_ups, .steps = 20}, Mode::recorded);
    const auto steps = static_cast<int>(training.steps_to_first_replay());
    training.run_to(steps - 1);
    EXPECT_EQ(training.replays(), 0);
    training.run_to(steps);
    EXPECT_EQ(training.replays(), 1);
  }
  EXPECT_EQ(ShortTraining({.model = "linear"}, Mode::plain).steps_to_first_replay(), 0);
}

TEST(WholeStep, EachImageSizeHasItsOwnRecording) {
  TrainingOptions options{.steps = 3 * kSteps,
                          .size_px = [](int step) { return 32 + 16 * (step % 3); }};
  ShortTraining expected(options, Mode::plain), found(options, Mode::recorded);
  expected.run();
  found.run();
  EXPECT_THAT(differences(found, expected), IsEmpty());
  EXPECT_EQ(found.log().recordings, 3);
  EXPECT_EQ(found.log().alive, 3);
  EXPECT_EQ(found.replays(), 3 * kReplays);
}

TEST(WholeStep, TheLeastRecentlyUsedRecordingMakesRoom) {
  // Sizes A, B, A, C, A with room for two recordings: C replaces B. The first steps of B and C drop
  // A's recording, which is made again without warming up.
  constexpr std::int64_t kSizes[] = {32, 48, 32, 64, 32};
  TrainingOptions options{.kept = 2, .steps = 5 * kSteps};
  options.size_px = [&](int step) { return kSizes[step / kSteps]; };
  ShortTraining expected(options, Mode::plain), found(options, Mode::recorded);
  expected.run();
  found.run();
  EXPECT_THAT(differences(found, expected), IsEmpty());
  EXPECT_EQ(found.log().recordings, 5);
  EXPECT_EQ(found.log().alive, 2);
  EXPECT_EQ(found.replays(), 3 * kReplays + 2 * kSteps);
}

/// A device without memory for some forward passes.
class LimitedMemory {
 public:
  using Fits = std::function<bool(const test::TapeLog& log)>;
  explicit LimitedMemory(Fits fits) : fits_(std::move(fits)) {}

  /// Expects the same results as with enough memory. @return how often memory has run out
  int expect_same(TrainingOptions options) {
    ShortTraining expected(options, Mode::plain);
    expected.run();
    options.in_forward = [this](const test::TapeLog& log) {
      if (fits_(log)) return;
      ++failures_;
      TORCH_CHECK_WITH(OutOfMemoryError, false, "Tried to allocate 7 GiB");
    };
    ShortTraining found(options, Mode::recorded);
    testing::internal::CaptureStderr();
    found.run();
    warnings_ = testing::internal::GetCapturedStderr();
    EXPECT_THAT(differences(found, expected), IsEmpty());
    log_ = found.log();
    return failures_;
  }
  [[nodiscard]] const test::TapeLog& log() const { return log_; }
  [[nodiscard]] const std::string& warnings() const { return warnings_; }

 private:
  Fits fits_;
  int failures_ = 0;
  test::TapeLog log_;
  std::string warnings_;
};

/// Work that is not recorded fits only if no recording exists, because it cannot use the memory of
/// the recordings' pool.
bool fits_without_recordings(const test::TapeLog& log) {
  return log.recording || log.alive == 0;
}

/// Steps of 32 px, then 48 px, then 32 px again.
TrainingOptions recurring_sizes() {
  return {.steps = 3 * kSteps, .size_px = [](int step) { return step / kSteps == 1 ? 48 : 32; }};
}

TEST(StepMemory, ANewSizeBeginsWithoutTheRecordingsOfOthers) {
  LimitedMemory memory(fits_without_recordings);
  EXPECT_EQ(memory.expect_same(recurring_sizes()), 0);
  EXPECT_EQ(memory.log().warm_ups, 2 * kWarmUps);
  EXPECT_EQ(memory.log().recordings, 3);
  EXPECT_EQ(memory.log().alive, 2);
  EXPECT_THAT(memory.warnings(), IsEmpty());
}

TEST(StepMemory, APartialBatchTakesTheMemoryOfRecordings) {
  for (const int world : {1, 2}) {
    TrainingOptions options{.steps = 2 * kSteps, .world = world};
    options.edit = [](int step, Batch& batch) {
      if (step == kSteps) batch = batch.narrow(0, 2);
    };
    LimitedMemory memory(fits_without_recordings);
    EXPECT_EQ(memory.expect_same(options), 0);
    EXPECT_EQ(memory.log().recordings, 2);
    EXPECT_THAT(memory.warnings(), IsEmpty());
  }
}

/// An evaluation drops the recordings.
TEST(StepMemory, DroppedRecordingsAreMadeAgain) {
  const TrainingOptions options{.steps = 2 * kSteps};
  ShortTraining expected(options, Mode::plain), found(options, Mode::recorded);
  expected.run();
  found.run_to(kSteps);
  ASSERT_EQ(found.log().alive, 1);
  found.drop_recordings();
  EXPECT_EQ(found.log().alive, 0);
  found.run();
  EXPECT_THAT(differences(found, expected), IsEmpty());
  EXPECT_EQ(found.log().recordings, 2);
  EXPECT_EQ(found.log().warm_ups, kWarmUps);
}

TEST(StepMemory, ARecordingTakesTheMemoryOfOthers) {
  LimitedMemory memory([](const test::TapeLog& log) { return !log.recording || log.alive == 0; });
  EXPECT_EQ(memory.expect_same(recurring_sizes()), 1);
  EXPECT_EQ(memory.log().recordings, 4);
  EXPECT_EQ(memory.log().alive, 1);
  EXPECT_THAT(memory.warnings(), HasSubstr("training.cuda_graphs"));
}

/// A second recording does not fit, so only one is kept from then on.
TEST(StepMemory, SizesThatAlternateAreNotRecordedAgainAndAgain) {
  TrainingOptions options{.steps = 4 * kSteps};
  options.size_px = [](int step) { return step % 2 == 1 ? 48 : 32; };
  LimitedMemory memory([](const test::TapeLog& log) { return !log.recording || log.alive == 0; });
  EXPECT_EQ(memory.expect_same(options), 1);
  EXPECT_EQ(memory.log().recordings, 2);
}

/// The other ranks replay work that this rank could not record.
TEST(StepMemory, OfSeveralRanksNoneContinuesWithoutTheRecording) {
  TrainingOptions options{.steps = 2 * kSteps, .world = 2};
  options.in_forward = [](const test::TapeLog& log) {
    TORCH_CHECK_WITH(OutOfMemoryError, !log.recording, "Tried to allocate 7 GiB");
  };
  ShortTraining training(options, Mode::recorded);
  EXPECT_THROW(training.run(), c10::OutOfMemoryError);
}

TEST(StepMemory, WhereNoRecordingFitsTrainingContinuesWithoutGraphs) {
  LimitedMemory memory([](const test::TapeLog& log) { return !log.recording; });
  EXPECT_EQ(memory.expect_same(recurring_sizes()), 1);
  EXPECT_EQ(memory.log().alive, 0);
  EXPECT_THAT(memory.warnings(), HasSubstr("training.cuda_graphs"));
}

TEST(StepMemory, WithoutRecordingsItIsAnError) {
  TrainingOptions options;
  options.in_forward = [](const test::TapeLog&) {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "Tried to allocate 7 GiB");
  };
  ShortTraining training(options, Mode::recorded);
  EXPECT_THROW(training.run(), c10::OutOfMemoryError);
}

TEST(WholeStep, FrozenLayersAreRecordedAgain) {
  TrainingOptions options{.methods = {{"layer_freezing", "{freeze_start: 0.2, freeze_level: 0.5}"}},
                          .steps = 4 * kSteps};
  ShortTraining expected(options, Mode::plain), found(options, Mode::recorded);
  expected.run();
  found.run();
  EXPECT_THAT(differences(found, expected), IsEmpty());
  EXPECT_GT(found.log().recordings, 1);
  EXPECT_EQ(found.log().alive, 1);
}

TEST(WholeStep, APartialBatchInBetweenRunsWithoutARecording) {
  TrainingOptions options{.steps = 2 * kSteps};
  options.edit = [](int step, Batch& batch) {
    if (step == kSteps) batch = batch.narrow(0, 2);
  };
  expect_same(options, Mode::plain, 2 * kSteps - 1 - kWarmUps);
}

TEST(WholeStep, AResumedTrainingEqualsTheUninterruptedOne) {
  const TrainingOptions options{
      .optimizer = "adamw", .methods = {{"ema", "{}"}}, .steps = 3 * kSteps};
  ShortTraining uninterrupted(options, Mode::recorded);
  uninterrupted.run();
  ShortTraining first(options, Mode::recorded);
  first.run_to(kSteps + 2);
  ShortTraining second(options, Mode::recorded);
  second.restore(first);
  second.run();
  std::vector<std::string> changed = differences(second, uninterrupted);
  std::erase(changed, "losses");
  EXPECT_THAT(changed, IsEmpty());
}

TEST(WholeStep, ATrainingThatGoesBackUsesItsRecordingAgain) {
  const TrainingOptions options{
      .optimizer = "adamw", .methods = {{"ema", "{}"}}, .steps = 3 * kSteps};
  ShortTraining uninterrupted(options, Mode::recorded), kept(options, Mode::recorded);
  ShortTraining rewound(options, Mode::recorded);
  uninterrupted.run();
  kept.run_to(kSteps);
  rewound.run_to(2 * kSteps);
  rewound.restore(kept);
  rewound.run();
  std::vector<std::string> changed = differences(rewound, uninterrupted);
  std::erase(changed, "losses");
  EXPECT_THAT(changed, IsEmpty());
  EXPECT_EQ(rewound.log().recordings, 1);
}

TEST(WholeStep, AHookThatReplacesGradientsIsRecorded) {
  class Halving final : public Method {
   public:
    void on_gradients(Model& model) override {
      for (const NamedTensor& parameter : model.parameters())
        parameter.tensor.mutable_grad() = parameter.tensor.grad() / 2;
    }
    void on_step_end(Model& model, std::int64_t /*global_step*/) override {
      for (const NamedTensor& parameter : model.parameters())
        parameter.tensor.mutable_grad() = at::zeros_like(parameter.tensor.detach());
    }
  };
  ShortTraining expected({}, Mode::plain), found({}, Mode::recorded);
  for (ShortTraining* training : {&expected, &found}) {
    training->add_method("halving", std::make_unique<Halving>());
    training->run();
  }
  EXPECT_THAT(differences(found, expected), IsEmpty());
}

// TapeRecorder freezes values of the host, as a CUDA recording does, so the tests above detect
// steps that depend on such values. The tests below prove this with deliberate faults.

TrainingOptions with_fault(FaultyOptimizer::Fault fault) {
  return {.model = "linear", .make_optimizer = [fault](const Model& model) {
            return std::make_unique<FaultyOptimizer>(fault, model.parameters());
          }};
}

TEST(PlantedFault, ARateThatTheHostReadsCannotBeRecorded) {
  ShortTraining training(with_fault(FaultyOptimizer::Fault::reads_lr_on_host), Mode::recorded);
  try {
    training.run();
    FAIL() << "expected an error";
  } catch (const DeviceError& failure) {
    EXPECT_EQ(failure.exit_code(), ExitCode::environment);
    EXPECT_THAT(failure.what(), HasSubstr("capturing"));
    EXPECT_THAT(failure.what(), HasSubstr("training.cuda_graphs"));
  }
}

TEST(PlantedFault, ARateOrMomentsOfTheHostGiveOtherWeights) {
  for (const auto fault :
       {FaultyOptimizer::Fault::ignores_lr_tensor, FaultyOptimizer::Fault::creates_moments_late}) {
    ShortTraining expected(with_fault(fault), Mode::unrecorded);
    ShortTraining found(with_fault(fault), Mode::recorded);
    expected.run();
    found.run();
    EXPECT_THAT(differences(found, expected), testing::Contains("weight"))
        << static_cast<int>(fault);
  }
}

TEST(PlantedFault, AHookThatCountsOnTheHostGivesOtherWeights) {
  class Counting final : public Method {
   public:
    void on_gradients(Model& model) override {
      for (const NamedTensor& parameter : model.parameters())
        parameter.tensor.grad().mul_(++count_);
    }

   private:
    int count_ = 0;
  };
  ShortTraining expected({.model = "linear"}, Mode::plain),
      found({.model = "linear"}, Mode::recorded);
  for (ShortTraining* training : {&expected, &found}) {
    training->add_method("counting", std::make_unique<Counting>());
    training->run();
  }
  EXPECT_THAT(differences(found, expected), testing::Contains("weight"));
}

}  // namespace
}  // namespace precast::engine
