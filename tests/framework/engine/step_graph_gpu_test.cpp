// Compares recorded passes and whole steps with the same steps launched kernel by kernel.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "framework/api/single_rank.h"
#include "framework/core/error.h"
#include "framework/distributed/grad_sync.h"
#include "framework/distributed/heartbeat.h"
#include "framework/engine/train_step.h"
#include "models/register.h"
#include "recipes/register.h"
#include "tests/recipes/make_method.h"
#include "tests/support/part_spec.h"

namespace precast::engine {
namespace {

const at::Device kGpu(at::kCUDA, 0);
constexpr std::int64_t kBatch = 16;
constexpr std::int64_t kClasses = 10;
/// With this rate, rounding errors stay small. At 0.01, the noise of atomic additions alone changes
/// losses by several per cent within 20 steps.
constexpr double kLr = 3e-4;
constexpr int kReplays = 3;
constexpr int kSteps = StepGraph::kWarmUps + kReplays;

/// Applies dropout on the device, so that a step draws from the device's generator.
class DropoutLoss : public TargetLoss {
 public:
  explicit DropoutLoss(std::unique_ptr<Loss> loss) : loss_(std::move(loss)) {}
  at::Tensor mean(const at::Tensor& logits, const at::Tensor& labels) const override {
    return (*loss_)(at::dropout(logits, 0.2, /*train=*/true), make_batch({}, labels));
  }

 private:
  std::unique_ptr<Loss> loss_;
};

/// Reads the loss on the host, which is possible in a plain step, but not in a recording.
class WaitingLoss final : public DropoutLoss {
 public:
  using DropoutLoss::DropoutLoss;
  at::Tensor mean(const at::Tensor& logits, const at::Tensor& labels) const override {
    const at::Tensor loss = DropoutLoss::mean(logits, labels);
    EXPECT_GT(loss.item<double>(), 0);
    return loss;
  }
};

struct Training {
  std::vector<double> losses;
  /// The values of all parameters, concatenated into one float64 vector on the CPU.
  at::Tensor first_weights, weights;
  std::int64_t replays = 0;
  double loss_sum = 0;
  /// The number of batches that the first batch norm has counted.
  std::int64_t batches = 0;
};

/// The settings of a training run, except the precision of its passes.
struct TrainingOptions {
  GraphMode graphs = GraphMode::off;
  std::int64_t micro_batches = 1;
  int steps = kSteps;
  std::string optimizer = "sgd";
  std::string optimizer_options = "{weight_decay: 5e-4}";
  /// Names of methods with on_gradients().
  std::vector<std::string> methods{};
  bool skip_nonfinite = false;
  /// Trains one rank over NCCL, with gradients summed after the backward pass.
  bool nccl = false;
  /// Called before each step.
  std::function<void(int step, Model& model)> prepare = [](int, Model&) {};
  std::function<std::int64_t(int step)> size_px = [](int) { return 64; };
  bool waits = false;
  /// The relative change of the images.
  double noise = 0;
};

class StepGraphGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no GPU that libtorch can use";
    benchmark_before_ = at::globalContext().benchmarkCuDNN();
    tf32_before_ = at::globalContext().allowTF32CuDNN();
    models::register_models(models_);
    recipes::register_losses(losses_);
    recipes::register_optimizers(optimizers_);
    plan_.precision = Precision::bf16;
    plan_.channels_last = true;
    plan_.global_batch_size = kBatch;
    plan_.model.num_classes = kClasses;
    plan_.model.blurpool = true;
  }
  void TearDown() override {
    at::globalContext().setBenchmarkCuDNN(benchmark_before_);
    at::globalContext().setAllowTF32CuDNN(tf32_before_);
  }

  Training train(const TrainingOptions& options) {
    plan_.micro_batches = options.micro_batches;
    at::manual_seed(1);
    const auto model = make_model(models_, plan_.model);
    model->to(kGpu, /*channels_last=*/true);
    model->train(true);
    const std::unique_ptr<Loss> loss = make_loss(options.waits);
    const std::vector<NamedTensor> parameters = model->parameters();
    const auto optimizer = optimizers_.make(
        test::part_spec(options.optimizer, options.optimizer_options), {parameters, kLr});
    std::vector<NamedMethod> methods;
    for (const std::string& name : options.methods)
      methods.push_back({name, test::make_method(name)});
    const std::unique_ptr<distributed::StoreHost> store =
        options.nccl ? std::make_unique<distributed::StoreHost>("127.0.0.1") : nullptr;
    std::unique_ptr<Communicator> ranks = make_single_rank();
    std::unique_ptr<GradSync> sync = make_single_rank_sync();
    if (options.nccl) {
      auto group = std::make_unique<distributed::ProcessGroup>(
          distributed::GroupOptions{.port = store->port(), .device = kGpu});
      sync = distributed::make_grad_sync(
          *group, parameters, {.update = distributed::VariableUpdate::allreduce_after_backward});
      ranks = std::move(group);
    }
    const StepParts parts{*model, *loss, *optimizer, methods, *ranks, *sync};
    TrainStep step(plan_, parts, kGpu, options.skip_nonfinite,
                   make_step_graph(options.graphs, plan_, kGpu, parts));
    const at::Tensor loss_sum = at::zeros({}, at::device(kGpu).dtype(at::kDouble));
    step.set_loss_callback([&](const at::Tensor& one) { loss_sum.add_(one); });
    Training result;
    result.first_weights = weights_of(*model);
    for (int i = 0; i < options.steps; ++i) {
      options.prepare(i, *model);
      Batch batch = make_batch(options.size_px(i), options.noise);
      // A different rate in each step: the optimiser must use it although the passes are recorded.
      result.losses.push_back(step.run(batch, kLr * (1 + i % 3) / 3).item<double>());
    }
    result.weights = weights_of(*model);
    result.replays = step.replayed_passes();
    result.loss_sum = loss_sum.item<double>();
    for (const NamedTensor& entry : model->state())
      if (entry.name == "bn1.num_batches_tracked")
        result.batches = entry.tensor.item<std::int64_t>();
    return result;
  }

  /// Expects losses within 1 % (fp32: 0.1 %), and weights within 5 % (fp32: 1 %) of their change in
  /// training.
  ///
  /// Both runs launch the same kernels; only atomic additions (pooling, some weight gradients) may
  /// differ, by rounding. A replay that is left out, or uses an old batch or rate, would change the
  /// update by a sixth or more.
  /// @param noise how far rounding alone may move the weights
  void expect_alike(const Training& found, const Training& expected, double noise = 0) const {
    const double loss_tolerance = plan_.precision == Precision::fp32 ? 1e-3 : 1e-2;
    ASSERT_EQ(found.losses.size(), expected.losses.size());
    for (std::size_t i = 0; i < expected.losses.size(); ++i)
      EXPECT_NEAR(found.losses[i], expected.losses[i], loss_tolerance * expected.losses[i]) << i;
    ASSERT_TRUE(at::equal(found.first_weights, expected.first_weights));
    EXPECT_NEAR(found.loss_sum, expected.loss_sum, loss_tolerance * expected.loss_sum);
    EXPECT_EQ(found.batches, expected.batches);
    const double update = (expected.weights - expected.first_weights).norm().item<double>();
    const double difference = (found.weights - expected.weights).norm().item<double>();
    const double weight_tolerance = plan_.precision == Precision::fp32 ? 1e-2 : 5e-2;
    // The tolerance must be smaller than the effect of a missing replay, a sixth of the update.
    ASSERT_LT(2 * noise, update / 8);
    EXPECT_LT(difference, std::max(weight_tolerance * update, 2 * noise)) << "noise " << noise;
  }

  TrainPlan plan_;

 private:
  static Batch make_batch(std::int64_t size_px, double noise) {
    // Drawn on the CPU, after the model's weights, so that each training run gets the same batches.
    const at::Tensor images = at::randn({kBatch, 3, size_px, size_px});
    if (noise > 0) images.mul_(at::cos(images * 1e3) * noise + 1);
    return {.fields = {{"image", images.contiguous(at::MemoryFormat::ChannelsLast).to(kGpu)},
                       {"label", at::randint(kClasses, {kBatch}, at::kLong).to(kGpu)}},
            .sample_ids = std::vector<std::uint64_t>(kBatch)};
  }

  static at::Tensor weights_of(const Model& model) {
    std::vector<at::Tensor> all;
    for (const NamedTensor& parameter : model.parameters())
      all.push_back(parameter.tensor.detach().to(at::kCPU).to(at::kDouble).flatten());
    return at::cat(all);
  }

  [[nodiscard]] std::unique_ptr<Loss> make_loss(bool waits) const {
    auto loss = losses_.make(test::part_spec("cross_entropy", "{label_smoothing: 0.1}"));
    if (waits) return std::make_unique<WaitingLoss>(std::move(loss));
    return std::make_unique<DropoutLoss>(std::move(loss));
  }

  bool benchmark_before_ = false, tf32_before_ = false;
  ModelRegistry models_{"model"};
  LossRegistry losses_{"loss"};
  OptimizerRegistry optimizers_{"optimizer"};
};

/// Parameters: the precision, and whether cuDNN searches for the fastest kernels.
class ReplayedStepGpu : public StepGraphGpu,
                        public ::testing::WithParamInterface<std::tuple<Precision, bool>> {
 protected:
  void SetUp() override {
    StepGraphGpu::SetUp();
    if (IsSkipped()) return;
    plan_.precision = std::get<0>(GetParam());
    at::globalContext().setBenchmarkCuDNN(std::get<1>(GetParam()));
  }
};

TEST_P(ReplayedStepGpu, TrainsAsTheEagerStep) {
  const Training found = train({.graphs = GraphMode::on});
  EXPECT_EQ(found.replays, kReplays);
  expect_alike(found, train({}));
}

TEST_P(ReplayedStepGpu, TrainsMicroBatchesAsTheEagerStep) {
  const Training found = train({.graphs = GraphMode::on, .micro_batches = 2});
  EXPECT_EQ(found.replays, kReplays);
  expect_alike(found, train({.micro_batches = 2}));
}

class WholeStepGpu : public ReplayedStepGpu {};

TEST_P(WholeStepGpu, TrainsAsTheEagerStep) {
  for (const bool skip_nonfinite : {false, true}) {
    SCOPED_TRACE(skip_nonfinite);
    const Training found = train({.graphs = GraphMode::step, .skip_nonfinite = skip_nonfinite});
    EXPECT_EQ(found.replays, kReplays);
    expect_alike(found, train({.skip_nonfinite = skip_nonfinite}));
  }
}

TEST_P(WholeStepGpu, TrainsMicroBatchesAsTheEagerStep) {
  const Training found = train({.graphs = GraphMode::step, .micro_batches = 2});
  EXPECT_EQ(found.replays, kReplays);
  expect_alike(found, train({.micro_batches = 2}));
}

/// Uses fp32 and a large epsilon. With a small one, the first updates of AdamW and LAMB depend only
/// on the sign of the gradient, and rounding determines the sign of a gradient near 0. Even with a
/// large one, images that differ by 1e-7 change AdamW's update by 2 % within these steps. A run
/// with images that differ by 1e-6 shows how far rounding may move the weights.
TEST_F(StepGraphGpu, WholeStepOfEachOptimizer) {
  plan_.precision = Precision::fp32;
  // TF32 would increase the differences between kernels that cuDNN may choose.
  at::globalContext().setAllowTF32CuDNN(false);
  for (const auto& [optimizer, options] : std::vector<std::pair<std::string, std::string>>{
           {"sgd", "{weight_decay: 5e-4}"},
           {"sgdw", "{weight_decay: 5e-4}"},
           {"adamw", "{weight_decay: 5e-4, epsilon: 0.01}"},
           {"lars", "{weight_decay: 5e-4}"},
           {"lamb", "{weight_decay: 5e-4, epsilon: 0.01}"}}) {
    SCOPED_TRACE(optimizer);
    TrainingOptions eager{.optimizer = optimizer, .optimizer_options = options};
    const Training expected = train(eager);
    eager.noise = 1e-6;
    const double noise = (train(eager).weights - expected.weights).norm().item<double>();
    eager.noise = 0;
    eager.graphs = GraphMode::step;
    const Training found = train(eager);
    EXPECT_EQ(found.replays, kReplays);
    expect_alike(found, expected, noise);
  }
}

/// The fused kernel also unscales and clips; the reference does so in separate passes.
TEST_P(WholeStepGpu, OfFusedSgdTrainsAsTheReference) {
  TrainingOptions options{.methods = {"gradient_clipping"}, .skip_nonfinite = true};
  const Training expected = train(options);
  options.optimizer_options = "{weight_decay: 5e-4, kernels: fused}";
  expect_alike(train(options), expected);
  options.graphs = GraphMode::step;
  const Training found = train(options);
  EXPECT_EQ(found.replays, kReplays);
  expect_alike(found, expected);
}

TEST_F(StepGraphGpu, WholeStepWithMethodsThatChangeGradients) {
  const std::vector<std::string> methods = {"gradient_clipping", "adaptive_gradient_clipping"};
  const Training found = train({.graphs = GraphMode::step, .methods = methods});
  EXPECT_EQ(found.replays, kReplays);
  expect_alike(found, train({.methods = methods}));
}

TEST_F(StepGraphGpu, WholeStepContainsTheSumOverTheRanks) {
  const Training found = train({.graphs = GraphMode::step, .nccl = true});
  EXPECT_EQ(found.replays, kReplays);
  expect_alike(found, train({.nccl = true}));
}

/// Both recordings are kept: the one for 64 px is replayed again after the one for 96 px.
TEST_F(StepGraphGpu, WholeStepsOfSeveralSizesShareAPool) {
  TrainingOptions options{.steps = 3 * kSteps,
                          .size_px = [](int step) { return step / kSteps == 1 ? 96 : 64; }};
  const Training expected = train(options);
  options.graphs = GraphMode::step;
  const Training found = train(options);
  EXPECT_EQ(found.replays, 2 * kReplays + kSteps);
  expect_alike(found, expected);
}

TEST_F(StepGraphGpu, WholeStepsAreRecordedAgainAfterALayerWasFrozen) {
  TrainingOptions options{.steps = 2 * kSteps};
  options.prepare = [&](int step, Model& model) {
    model.parameters().front().tensor.requires_grad_(step < kSteps);
  };
  const Training expected = train(options);
  options.graphs = GraphMode::step;
  const Training found = train(options);
  EXPECT_EQ(found.replays, 2 * kReplays);
  expect_alike(found, expected);
}

INSTANTIATE_TEST_SUITE_P(Precisions, WholeStepGpu,
                         ::testing::Combine(::testing::Values(Precision::fp32, Precision::fp16,
                                                              Precision::bf16),
                                            ::testing::Bool()));
INSTANTIATE_TEST_SUITE_P(Precisions, ReplayedStepGpu,
                         ::testing::Combine(::testing::Values(Precision::fp32, Precision::fp16,
                                                              Precision::bf16),
                                            ::testing::Bool()));

TEST_F(StepGraphGpu, LargerImagesAreRecordedAgain) {
  TrainingOptions options{.steps = 2 * kSteps,
                          .size_px = [](int step) { return step < kSteps ? 64 : 96; }};
  const Training expected = train(options);
  options.graphs = GraphMode::on;
  const Training found = train(options);
  EXPECT_EQ(found.replays, 2 * kReplays);
  expect_alike(found, expected);
}

TEST_F(StepGraphGpu, FreezingALayerInBetweenIsRecordedAgain) {
  at::Tensor frozen_at_start, frozen_at_end;
  TrainingOptions options{.steps = 3 * kSteps};
  options.prepare = [&](int step, Model& model) {
    const at::Tensor first = model.parameters().front().tensor;
    first.requires_grad_(step < kSteps || step >= 2 * kSteps);
    if (step == kSteps) frozen_at_start = first.detach().clone();
    if (step == 2 * kSteps) frozen_at_end = first.detach().clone();
  };
  const Training expected = train(options);
  options.graphs = GraphMode::on;
  const Training found = train(options);
  EXPECT_TRUE(at::equal(frozen_at_start, frozen_at_end));
  EXPECT_EQ(found.replays, 3 * kReplays);
  expect_alike(found, expected);
}

TEST_F(StepGraphGpu, AutomaticContinuesAfterAFailedRecording) {
  const Training expected = train({.waits = true});
  testing::internal::CaptureStderr();
  const Training found = train({.graphs = GraphMode::automatic, .waits = true});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("training.cuda_graphs"));
  EXPECT_EQ(found.replays, 0);
  // The dropout is also the same, because the failed recording drew no random numbers.
  expect_alike(found, expected);
}

TEST_F(StepGraphGpu, ARecordingSucceedsAfterAFailedOne) {
  static_cast<void>(train({.graphs = GraphMode::automatic, .waits = true}));
  const Training found = train({.graphs = GraphMode::on});
  EXPECT_EQ(found.replays, kReplays);
  expect_alike(found, train({}));
}

TEST_F(StepGraphGpu, OnAndStepEndTheRunAfterAFailedRecording) {
  for (const GraphMode mode : {GraphMode::on, GraphMode::step}) {
    try {
      static_cast<void>(train({.graphs = mode, .waits = true}));
      FAIL() << "expected an error";
    } catch (const DeviceError& failure) {
      EXPECT_EQ(failure.exit_code(), ExitCode::environment);
      EXPECT_THAT(failure.what(), testing::HasSubstr("captur"));
    }
  }
}

}  // namespace
}  // namespace precast::engine
