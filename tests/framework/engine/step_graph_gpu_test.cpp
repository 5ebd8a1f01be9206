// The recorded step against the same step launched kernel by kernel.
#include <ATen/Context.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "framework/api/single_rank.h"
#include "framework/engine/train_step.h"
#include "models/register.h"
#include "recipes/register.h"

namespace precast::engine {
namespace {

const at::Device kGpu(at::kCUDA, 0);
constexpr std::int64_t kBatch = 16;
constexpr std::int64_t kClasses = 10;
constexpr int kSteps = 20;
/// In the middle images grow, so that a second graph is recorded.
constexpr int kGrowsAt = 10;
constexpr double kLr = 0.01;

class StepGraphGpuTest : public ::testing::TestWithParam<Precision> {
 protected:
  void SetUp() override {
    if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no GPU that libtorch can use";
    models::register_models(models_);
    recipes::register_losses(losses_);
    recipes::register_optimizers(optimizers_);
    plan_.precision = GetParam();
    plan_.channels_last = true;
    plan_.global_batch_size = kBatch;
    plan_.model.num_classes = kClasses;
    plan_.model.blurpool = true;
  }

  std::vector<double> losses(GraphMode graphs, std::int64_t micro_batches = 1) {
    plan_.micro_batches = micro_batches;
    at::manual_seed(1);
    const auto model = models_.create("resnet18", plan_.model);
    model->to(kGpu, /*channels_last=*/true);
    model->train(true);
    const auto loss = losses_.create("cross_entropy", LossOptions{.label_smoothing = 0.1});
    const auto optimizer =
        optimizers_.create("sgd", model->parameters(), OptimizerOptions{.weight_decay = 5e-4});
    std::vector<NamedMethod> methods;
    const auto ranks = make_single_rank();
    const auto sync = make_single_rank_sync();
    TrainStep step(plan_, {*model, *loss, *optimizer, methods, *ranks, *sync}, kGpu,
                   /*skip_nonfinite=*/false, graphs);
    std::vector<double> losses;
    for (int i = 0; i < kSteps; ++i) {
      Batch batch = make_batch(i < kGrowsAt ? 64 : 96);
      // Another rate each step: the optimiser must see it although the passes are recorded.
      losses.push_back(step.run(batch, kLr * (1 + i % 3)).item<double>());
    }
    return losses;
  }

 private:
  static Batch make_batch(std::int64_t size_px) {
    // Drawn on the CPU, after the model: the same in each run.
    const at::Tensor images = at::randn({kBatch, 3, size_px, size_px});
    return {.fields = {{"image", images.contiguous(at::MemoryFormat::ChannelsLast).to(kGpu)},
                       {"label", at::randint(kClasses, {kBatch}, at::kLong).to(kGpu)}},
            .sample_ids = std::vector<std::uint64_t>(kBatch)};
  }

  TrainPlan plan_;
  ModelRegistry models_{"model"};
  LossRegistry losses_{"loss"};
  OptimizerRegistry optimizers_{"optimizer"};
};

void expect_alike(const std::vector<double>& found, const std::vector<double>& expected) {
  // Pooling adds gradients in any order. Losses of two different batches are further apart.
  constexpr double kTolerance = 0.02;
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], kTolerance * expected[i]) << "step " << i;
}

TEST_P(StepGraphGpuTest, LossesAreThoseOfTheEagerStep) {
  expect_alike(losses(GraphMode::on), losses(GraphMode::off));
}

TEST_P(StepGraphGpuTest, MicroBatchesAreRecordedToo) {
  expect_alike(losses(GraphMode::on, /*micro_batches=*/2),
               losses(GraphMode::off, /*micro_batches=*/2));
}

INSTANTIATE_TEST_SUITE_P(Precisions, StepGraphGpuTest,
                         ::testing::Values(Precision::fp32, Precision::fp16, Precision::bf16));

}  // namespace
}  // namespace precast::engine
