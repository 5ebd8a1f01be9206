// Compares networks with and without fused kernels. Built twice, see fused_device.h.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "framework/api/single_rank.h"
#include "framework/engine/checkpointer.h"
#include "framework/engine/train_step.h"
#include "models/resnet.h"
#include "recipes/register.h"
#include "tests/models/fused_device.h"
#include "tests/recipes/make_method.h"
#include "tests/support/noise_tensor.h"
#include "tests/support/part_spec.h"
#include "tests/support/temporary_folder.h"

namespace precast::test {
namespace {

using models::ResNetOptions;
using models::ResNetShape;

constexpr std::int64_t kImages = 4, kClasses = 10, kSizePx = 64;
/// With this rate, rounding errors stay small. At 0.01, noise changes losses by several per cent in
/// 20 steps.
constexpr double kLr = 3e-4;
constexpr int kSteps = 3;
/// Weight of the last norm of each block. At 1, rounding errors in a deep network grow as large as
/// the update.
constexpr double kBranchGain = 0.05;
constexpr int kMaxBatches = 3;

constexpr ResNetShape kResNet18{.blocks = {2, 2, 2, 2}};
constexpr ResNetShape kResNet50{.bottleneck = true, .blocks = {3, 4, 6, 3}};
constexpr ResNetShape kSmall{.blocks = {1, 1, 1, 1}};
constexpr ResNetShape kSmallBottlenecks{
    .bottleneck = true, .blocks = {1, 1, 1, 1}, .width_per_group = 16};

/// The network to train, and how.
struct Training {
  ResNetShape shape{};
  bool blurpool = false;
  Precision precision = Precision::fp32;
  int steps = kSteps;
  std::int64_t micro_batches = 1;
  std::string method{};
  /// Parameters whose names begin with this prefix are not trained. Empty: all are trained.
  std::string frozen{};
  ResNetOptions options{};
  bool fused = false;
  /// The number of the first batch.
  int first_batch = 0;
};

struct Trained {
  /// All values in one float64 vector on the CPU.
  at::Tensor weights_before{}, statistics_before{}, weights{}, statistics{};
  double loss = 0;
};

std::unique_ptr<Model> network(const Training& training) {
  at::manual_seed(1);
  auto model = models::make_resnet(
      training.shape,
      {.num_classes = kClasses, .blurpool = training.blurpool, .fused_kernels = training.fused},
      training.options);
  model->to(fused_device(), /*channels_last=*/true);
  model->train(true);
  const std::string last_gain = training.shape.bottleneck ? "bn3.weight" : "bn2.weight";
  for (const NamedTensor& parameter : model->parameters()) {
    const at::NoGradGuard no_grad;
    if (parameter.name.ends_with(last_gain)) parameter.tensor.fill_(kBranchGain);
  }
  for (const NamedTensor& parameter : model->parameters())
    if (!training.frozen.empty() && parameter.name.starts_with(training.frozen))
      parameter.tensor.requires_grad_(false);
  return model;
}

at::Tensor joined(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& tensor : tensors)
    all.push_back(tensor.detach().to(at::kCPU, at::kDouble).flatten());
  return at::cat(all);
}

at::Tensor weights_of(const Model& model) {
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& parameter : model.parameters()) tensors.push_back(parameter.tensor);
  return joined(tensors);
}

std::vector<NamedTensor> trainable(const Model& model) {
  std::vector<NamedTensor> parameters;
  for (const NamedTensor& parameter : model.parameters())
    if (parameter.tensor.requires_grad()) parameters.push_back(parameter);
  return parameters;
}

Batch batch_of_step(int step) {
  const auto stream = static_cast<std::uint32_t>(100 + step);
  at::Tensor labels = at::empty({kImages}, at::kLong);
  for (std::int64_t i = 0; i < kImages; ++i) labels[i] = (3 * i + step) % kClasses;
  return {.fields = {{"image", noise_tensor(stream, {kImages, 3, kSizePx, kSizePx}, 4)
                                   .contiguous(at::MemoryFormat::ChannelsLast)
                                   .to(fused_device())},
                     {"label", labels.to(fused_device())}},
          .sample_ids = std::vector<std::uint64_t>(kImages)};
}

/// A model with everything that its training steps need.
class Run {
 public:
  Run(Model& model, const Training& training) : model_(model) {
    LossRegistry losses("loss");
    OptimizerRegistry optimizers("optimizer");
    recipes::register_losses(losses);
    recipes::register_optimizers(optimizers);
    plan_.precision = training.precision;
    plan_.channels_last = true;
    plan_.global_batch_size = kImages;
    plan_.micro_batches = training.micro_batches;
    plan_.model.num_classes = kClasses;
    loss_ = losses.make(part_spec("cross_entropy"));
    optimizer_ = optimizers.make(part_spec("sgd", "{momentum: 0}"), {trainable(model)});
    if (!training.method.empty())
      methods_.push_back({training.method, make_method(training.method)});
    step_.emplace(plan_, engine::StepParts{model, *loss_, *optimizer_, methods_, *ranks_, *sync_},
                  fused_device(), /*skip_nonfinite=*/false);
    at::manual_seed(2);
  }
  /// Trains `count` steps, the first of which has the number `first`.
  Trained steps(int first, int count) {
    Trained result{.weights_before = weights_of(model_),
                   .statistics_before = joined(statistics_of(model_))};
    for (int i = first; i < first + count; ++i) {
      Batch batch = batch_of_step(i);
      result.loss = step_->run(batch, kLr).item<double>();
    }
    result.weights = weights_of(model_);
    result.statistics = joined(statistics_of(model_));
    return result;
  }
  [[nodiscard]] engine::CheckpointParts checkpoint_parts() {
    return {model_, *optimizer_, methods_, *ranks_, fused_device()};
  }

 private:
  Model& model_;
  TrainPlan plan_;
  std::unique_ptr<Loss> loss_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<NamedMethod> methods_;
  std::unique_ptr<Communicator> ranks_ = make_single_rank();
  std::unique_ptr<GradSync> sync_ = make_single_rank_sync();
  std::optional<engine::TrainStep> step_;
};

Trained train(Training training, bool fused) {
  training.fused = fused;
  const auto model = network(training);
  return Run(*model, training).steps(training.first_batch, training.steps);
}

/// The differences of two training runs: of weights and statistics, relative to the change that
/// training has made; of the loss, relative to the loss.
struct Distance {
  double weights, statistics, loss;
};

Distance distance(const Trained& found, const Trained& expected) {
  const auto share = [](const at::Tensor& a, const at::Tensor& b, const at::Tensor& before) {
    return ((a - b).norm() / (b - before).norm()).item<double>();
  };
  return {share(found.weights, expected.weights, expected.weights_before),
          share(found.statistics, expected.statistics, expected.statistics_before),
          std::abs(found.loss - expected.loss) / expected.loss};
}

class FusedNetworkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = missing_fused_device(); !reason.empty()) GTEST_SKIP() << reason;
    // TF32 would increase the small differences between the two networks.
    at::globalContext().setAllowTF32CuDNN(false);
    kernels_.emplace();
  }
  void TearDown() override { at::globalContext().setAllowTF32CuDNN(true); }

  /// Counts in a network: all norms, the shortcuts with a projection (whose norm is fused with the
  /// last norm of the block), the blurs, and the sums of two gradients.
  struct Fused {
    int norms, projections, blurs, forks;
  };
  static void expect_alike(const Training& training, const Fused& layers) {
    const int steps = training.steps;
    // The norm before the max pool is part of the pool's kernels.
    const int single = layers.norms - 1 - 2 * layers.projections;
    expect_alike(training, FusedCalls{.norm_forward = single * steps,
                                      .norm_backward = single * steps,
                                      .blur_forward = layers.blurs * steps,
                                      .blur_backward = layers.blurs * steps,
                                      .norm_pool_forward = steps,
                                      .norm_pool_backward = steps,
                                      .dual_norm_forward = layers.projections * steps,
                                      .dual_norm_backward = layers.projections * steps,
                                      .stem_input = steps,
                                      .forks = layers.forks * steps});
  }
  /// Rounding may move an activation across the kink of a ReLU, which changes a gradient by several
  /// per cent. The test then tries another batch: it is unlikely that this happens again, but an
  /// error affects all batches.
  static void expect_alike(Training training, const std::optional<FusedCalls>& calls) {
    Distance between{};
    for (int batches = 0; batches < kMaxBatches; ++batches) {
      CountedKernels::reset();
      training.first_batch = 10 * batches;
      const Trained reference = train(training, /*fused=*/false);
      EXPECT_EQ(CountedKernels::calls(), FusedCalls{});
      const Trained fused = train(training, /*fused=*/true);
      EXPECT_GT(CountedKernels::calls().norm_backward, 0);
      if (calls) {
        EXPECT_EQ(CountedKernels::calls(), *calls);
      }
      between = distance(fused, reference);
      if (alike(between)) return;
    }
    ADD_FAILURE() << "weights " << between.weights << ", statistics " << between.statistics
                  << ", loss " << between.loss;
  }
  /// A missing or doubled gradient changes the update by several per cent.
  static bool alike(const Distance& between) {
    return between.weights < 5e-3 && between.statistics < 1e-4 && between.loss < 1e-4;
  }
  /// In 16 bits, both networks differ from float32 by rounding; the fused network rounds less
  /// often. The errors are random, so on a GPU, those of several runs are added. On the host,
  /// kernels are slow, and the error of one run is reproducible.
  static void expect_no_worse(Training training) {
    const Precision precision = training.precision;
    Distance fused{}, reference{};
    const int runs = fused_device().is_cuda() ? 4 : 1;
    for (int run = 0; run < runs; ++run) {
      training.first_batch = 10 * run;
      training.precision = Precision::fp32;
      const Trained exact = train(training, /*fused=*/false);
      const auto add = [&](bool kernels, Distance& sum) {
        const Distance one = distance(train(training, kernels), exact);
        sum.weights += one.weights;
        sum.statistics += one.statistics;
        EXPECT_LT(one.weights, 0.5);
      };
      training.precision = precision;
      add(true, fused);
      EXPECT_GT(CountedKernels::calls().norm_forward, 0);
      add(false, reference);
    }
    EXPECT_LT(fused.weights, 1.25 * reference.weights);
    EXPECT_LT(fused.statistics, 1.25 * reference.statistics);
  }

 private:
  std::optional<CountedKernels> kernels_;
};

TEST_F(FusedNetworkTest, TrainsResNet18AsTheReference) {
  expect_alike({.shape = kResNet18}, {.norms = 20, .projections = 3, .blurs = 0, .forks = 8});
}

/// The two convolutions of a block that read blurred images share one blur.
TEST_F(FusedNetworkTest, TrainsResNet18WithBlurPoolAsTheReference) {
  expect_alike({.shape = kResNet18, .blurpool = true},
               {.norms = 20, .projections = 3, .blurs = 3, .forks = 8});
}

TEST_F(FusedNetworkTest, TrainsResNet50AsTheReference) {
  expect_alike({.shape = kResNet50}, {.norms = 53, .projections = 4, .blurs = 0, .forks = 16});
}

TEST_F(FusedNetworkTest, TrainsResNet50WithBlurPoolAsTheReference) {
  expect_alike({.shape = kResNet50, .blurpool = true},
               {.norms = 53, .projections = 4, .blurs = 6, .forks = 16});
}

TEST_F(FusedNetworkTest, IsAsExactAsTheReferenceInBf16) {
  expect_no_worse({.shape = kSmall, .precision = Precision::bf16});
}

TEST_F(FusedNetworkTest, IsAsExactAsTheReferenceInFp16) {
  expect_no_worse({.shape = kSmall, .precision = Precision::fp16});
}

TEST_F(FusedNetworkTest, AccumulatesGradientsAndFreezesParametersAsTheReference) {
  // A norm of a block, the stem's norm with the max pool, and the norm of a projection.
  for (const char* frozen : {"layer1.0.bn2", "bn1", "layer2.0.downsample.1"}) {
    SCOPED_TRACE(frozen);
    expect_alike({.shape = kSmall, .steps = 1, .micro_batches = 2, .frozen = frozen}, std::nullopt);
  }
}

TEST_F(FusedNetworkTest, TakesBothStepsOfSam) {
  expect_alike({.shape = kSmall, .steps = 1, .method = "sam"}, std::nullopt);
}

/// Both networks drop the same branches. The addition and the ReLU after a branch that may be
/// dropped are separate ops.
TEST_F(FusedNetworkTest, CombinesWithSqueezeExciteAndStochasticDepth) {
  Training training{.shape = kSmall, .steps = 1};
  training.options.squeeze_excite.latent_channels = 16;
  training.options.stochastic_depth.drop_rate = 0.5;
  training.options.stochastic_depth.mode = "sample";
  expect_alike(training, {.norms = 12, .projections = 0, .blurs = 0, .forks = 1});
}

TEST_F(FusedNetworkTest, EvaluatesByTheReference) {
  const auto fused = network({.shape = kSmall, .blurpool = true, .fused = true}),
             reference = network({.shape = kSmall, .blurpool = true});
  fused->train(false);
  reference->train(false);
  const at::NoGradGuard no_grad;
  const Batch batch = batch_of_step(0);
  EXPECT_TRUE(fused->forward(batch).equal(reference->forward(batch)));
  EXPECT_EQ(CountedKernels::calls(), FusedCalls{});
}

/// Trains one step of the run in `folder`, from its checkpoint if there is one, and saves a
/// checkpoint there.
Trained next_step(const Training& training, const std::filesystem::path& folder) {
  const auto model = network(training);
  Run run(*model, training);
  engine::Checkpointer checkpointer({.folder = folder}, run.checkpoint_parts(), {},
                                    [](const nlohmann::ordered_json& /*saved*/) {});
  engine::TrainState state;
  state.loss_sum = at::zeros({}, at::device(fused_device()).dtype(at::kDouble));
  state.loss_count = at::zeros_like(state.loss_sum);
  const bool begun = !std::filesystem::is_empty(folder);
  EXPECT_EQ(checkpointer.resume(state), begun);
  Trained trained = run.steps(static_cast<int>(state.global_step), 1);
  ++state.global_step;
  EXPECT_TRUE(checkpointer.save(state, std::nullopt));
  checkpointer.finish();
  return trained;
}

/// The state goes through checkpoints on disk, as in a run that is resumed with a different
/// model.kernels.
TEST_F(FusedNetworkTest, CheckpointsContinueInTheOtherNetworkAndBack) {
  for (const ResNetShape& shape : {kSmall, kSmallBottlenecks}) {
    Training training{.shape = shape, .blurpool = true};
    const Trained expected = train(training, /*fused=*/false);
    const TemporaryFolder folder;
    std::vector<int> forwards;
    Trained found;
    for (const bool fused : {false, true, false}) {
      CountedKernels::reset();
      training.fused = fused;
      found = next_step(training, folder.path());
      forwards.push_back(CountedKernels::calls().norm_forward);
    }
    // Norms that are fused with the max pool or with another norm do not count.
    EXPECT_THAT(forwards, ::testing::ElementsAre(0, shape.bottleneck ? 8 : 5, 0));
    const Distance between = distance(found, expected);
    EXPECT_LT(between.weights, 2e-2);
    EXPECT_LT(between.statistics, 1e-4);
  }
}

}  // namespace
}  // namespace precast::test
