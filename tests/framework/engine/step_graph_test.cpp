#include "framework/engine/step_graph.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/stack.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/api/single_rank.h"
#include "framework/core/error.h"
#include "framework/engine/train_step.h"
#include "tests/support/fake_parts.h"

namespace precast::engine {
namespace {

using test::LinearModel;
using testing::HasSubstr;

constexpr std::int64_t kClasses = 3;
constexpr std::int64_t kBatch = 4;
constexpr double kLr = 0.1;
/// Part of CUDA's error for an operation that waits for the device during a capture.
constexpr const char* kCaptureFailure = "not permitted when stream is capturing";

/// Counts the calls to a FakeRecorder. It is a separate object because the StepGraph owns the
/// recorder.
struct RecorderLog {
  int warm_ups = 0;
  int recordings = 0;
  int drops = 0;
};

/// Records work on the host: a replay runs the work again and copies its gradients to the
/// recording's tensors. record() runs the work, as a CUDA recording runs the code on the host, and
/// then calls `fail`, which may throw.
class FakeRecorder final : public GraphRecorder {
 public:
  FakeRecorder(
      RecorderLog& log, std::vector<at::Tensor> parameters, std::function<void()> fail = [] {})
      : log_(log), parameters_(std::move(parameters)), fail_(std::move(fail)) {}

  void warm_up(const Work& work) override {
    ++log_.warm_ups;
    work();
  }
  [[nodiscard]] std::unique_ptr<Recording> record(const Work& work) override {
    ++log_.recordings;
    work();
    fail_();
    return std::make_unique<FakeRecording>(log_, parameters_, work);
  }
  void free_unused_memory() override {}

 private:
  class FakeRecording final : public Recording {
   public:
    FakeRecording(RecorderLog& log, std::vector<at::Tensor> parameters, Work work)
        : log_(log), parameters_(std::move(parameters)), work_(std::move(work)) {
      for (const at::Tensor& parameter : parameters_) gradients_.push_back(parameter.grad());
    }
    FakeRecording(const FakeRecording&) = delete;
    FakeRecording& operator=(const FakeRecording&) = delete;
    ~FakeRecording() override { ++log_.drops; }

    void replay() override {
      work_();
      for (std::size_t i = 0; i < parameters_.size(); ++i) {
        if (gradients_[i].defined()) gradients_[i].copy_(parameters_[i].grad());
      }
    }

   private:
    RecorderLog& log_;
    std::vector<at::Tensor> parameters_;
    Work work_;
    std::vector<at::Tensor> gradients_;
  };

  RecorderLog& log_;
  std::vector<at::Tensor> parameters_;
  std::function<void()> fail_;
};

/// Draws random numbers on the host, as dropout does.
class NoisyCrossEntropy final : public TargetLoss {
 public:
  at::Tensor mean(const at::Tensor& logits, const at::Tensor& labels) const override {
    return at::cross_entropy_loss(logits + at::rand_like(logits), labels);
  }
};

/// Plain gradient descent.
class Descent final : public Optimizer {
 public:
  explicit Descent(at::Tensor weight) : weight_(std::move(weight)) {}
  void step(double lr, const std::optional<Scaled>& /*scaled*/) override {
    weight_.detach().sub_(weight_.grad(), lr);
  }

 private:
  at::Tensor weight_;
};

Batch random_batch(std::int64_t size_px = 2) {
  return {.fields = {{"image", at::rand({kBatch, 3, size_px, size_px})},
                     {"label", at::randint(kClasses, {kBatch}, at::kLong)}},
          .sample_ids = std::vector<std::uint64_t>(kBatch)};
}

/// The parameters of two layers, and forward and backward passes that a recorder can record.
class StepGraphTest : public ::testing::Test {
 protected:
  StepGraphTest() { at::manual_seed(3); }

  at::Tensor run(const Batch& batch) { return graph_.run(batch, passes_); }
  void warm_up_and_record() {
    for (int i = 0; i <= StepGraph::kWarmUps; ++i) static_cast<void>(run(random_batch()));
  }

  at::Tensor scale_ = at::ones({3}).requires_grad_();
  at::Tensor weight_ = at::rand({kClasses, 3}).requires_grad_();
  RecorderLog log_;
  StepGraph::Work passes_ = [this](const Batch& batch) {
    scale_.mutable_grad().reset();
    weight_.mutable_grad().reset();
    const at::Tensor logits = at::matmul(batch.images().mean({2, 3}) * scale_, weight_.t());
    const at::Tensor loss = at::cross_entropy_loss(logits, batch.labels());
    loss.backward();
    return loss.detach();
  };
  StepGraph graph_{GraphMode::on,
                   std::make_unique<FakeRecorder>(log_, std::vector<at::Tensor>{scale_, weight_}),
                   {scale_, weight_}};
};

TEST(StepGraph, IsWorthItForFewPixels) {
  EXPECT_TRUE(worth_recording(GraphMode::automatic, 95, 160));
  EXPECT_FALSE(worth_recording(GraphMode::automatic, 96, 160));
  EXPECT_TRUE(worth_recording(GraphMode::automatic, 512, 32));
  EXPECT_FALSE(worth_recording(GraphMode::automatic, 256, 224));
  EXPECT_TRUE(worth_recording(GraphMode::on, 256, 224));
  EXPECT_TRUE(worth_recording(GraphMode::step, 256, 224));
}

TEST(StepGraph, IsNotMadeForACpu) {
  LinearModel model(kClasses);
  const NoisyCrossEntropy loss;
  Descent optimizer(model.weight);
  const std::vector<NamedMethod> methods;
  const auto ranks = make_single_rank();
  const auto sync = make_single_rank_sync();
  const StepParts parts{model, loss, optimizer, methods, *ranks, *sync};
  for (const GraphMode mode : {GraphMode::automatic, GraphMode::on, GraphMode::step})
    EXPECT_EQ(make_step_graph(mode, {}, at::kCPU, parts), nullptr);
}

TEST_F(StepGraphTest, WarmsUpThenRecordsOnceThenReplays) {
  for (int i = 0; i < StepGraph::kWarmUps; ++i) static_cast<void>(run(random_batch()));
  EXPECT_EQ(log_.warm_ups, StepGraph::kWarmUps);
  EXPECT_EQ(log_.recordings, 0);
  EXPECT_EQ(graph_.replays(), 0);
  // Work that is being recorded is not executed, so the step that records it also replays it.
  for (int i = 0; i < 4; ++i) static_cast<void>(run(random_batch()));
  EXPECT_EQ(log_.warm_ups, StepGraph::kWarmUps);
  EXPECT_EQ(log_.recordings, 1);
  EXPECT_EQ(graph_.replays(), 4);
}

TEST_F(StepGraphTest, EachRunGivesLossAndGradientsOfItsOwnBatch) {
  std::vector<at::Tensor> losses, expected_losses;
  for (int i = 0; i < 7; ++i) {
    Batch batch = random_batch();
    losses.push_back(run(batch));
    const at::Tensor gradient = weight_.grad().clone();
    expected_losses.push_back(passes_(batch));
    EXPECT_TRUE(at::equal(gradient, weight_.grad())) << i;
  }
  // Later replays do not change the losses that were returned.
  EXPECT_TRUE(at::equal(at::stack(losses), at::stack(expected_losses)));
}

TEST_F(StepGraphTest, AnotherShapeOrTypeStartsOver) {
  warm_up_and_record();
  static_cast<void>(run(random_batch(/*size_px=*/3)));
  EXPECT_EQ(log_.drops, 1);
  EXPECT_EQ(log_.warm_ups, StepGraph::kWarmUps + 1);
  for (int i = 0; i < StepGraph::kWarmUps; ++i) static_cast<void>(run(random_batch(/*size_px=*/3)));
  EXPECT_EQ(log_.recordings, 2);
  Batch mixed = random_batch(/*size_px=*/3);
  mixed.labels() = at::full({kBatch, kClasses}, 1.0 / kClasses);
  static_cast<void>(run(mixed));
  EXPECT_EQ(log_.drops, 2);
  EXPECT_EQ(log_.warm_ups, 2 * StepGraph::kWarmUps + 1);
}

TEST_F(StepGraphTest, FreezingAParameterStartsOver) {
  warm_up_and_record();
  scale_.requires_grad_(false);
  warm_up_and_record();
  EXPECT_EQ(log_.drops, 1);
  EXPECT_EQ(log_.recordings, 2);
  EXPECT_FALSE(scale_.grad().defined());
  EXPECT_TRUE(weight_.grad().defined());
}

TEST_F(StepGraphTest, ReleasingAParameterGivesItsGradientAgain) {
  scale_.requires_grad_(false);
  warm_up_and_record();
  scale_.requires_grad_(true);
  for (int i = 0; i < 5; ++i) {
    static_cast<void>(run(random_batch()));
    EXPECT_TRUE(scale_.grad().defined()) << i;
  }
  EXPECT_EQ(log_.recordings, 2);
}

struct Training {
  std::vector<double> losses;
  at::Tensor weight;
};

/// Trains a linear model through TrainStep. @param make_graph creates the StepGraph for the model
Training train(const std::function<std::unique_ptr<StepGraph>(const LinearModel&)>& make_graph) {
  TrainPlan plan;
  plan.global_batch_size = kBatch;
  at::manual_seed(5);
  LinearModel model(kClasses);
  const NoisyCrossEntropy loss;
  Descent optimizer(model.weight);
  std::vector<NamedMethod> methods;
  const auto ranks = make_single_rank();
  const auto sync = make_single_rank_sync();
  TrainStep step(plan, {model, loss, optimizer, methods, *ranks, *sync}, at::kCPU,
                 /*skip_nonfinite=*/false, make_graph(model));
  Training result;
  for (int i = 0; i < 8; ++i) {
    // A different batch size near the end: after a failure, recording is not tried again.
    Batch batch = random_batch(i < 6 ? 2 : 3);
    result.losses.push_back(step.run(batch, kLr).item<double>());
  }
  result.weight = model.weight.detach().clone();
  EXPECT_EQ(step.replayed_passes(), 0);
  return result;
}

std::function<std::unique_ptr<StepGraph>(const LinearModel&)> failing_graph(
    GraphMode mode, RecorderLog& log, const std::function<void()>& fail) {
  return [=, &log](const LinearModel& model) {
    const std::vector<at::Tensor> parameters = {model.weight};
    return std::make_unique<StepGraph>(mode, std::make_unique<FakeRecorder>(log, parameters, fail),
                                       parameters);
  };
}

void refuse_to_record() {
  TORCH_CHECK(false, "CUDA error: operation ", kCaptureFailure, "\nadvice");
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t position = text.find(part); position != std::string::npos;
       position = text.find(part, position + 1))
    ++found;
  return found;
}

TEST(FailedRecording, AutomaticContinuesAsIfThereWereNoGraph) {
  const Training expected = train([](const LinearModel&) { return nullptr; });
  RecorderLog log;
  const Training found = train(failing_graph(GraphMode::automatic, log, refuse_to_record));
  EXPECT_EQ(log.recordings, 1);
  EXPECT_EQ(log.warm_ups, StepGraph::kWarmUps);
  // Bitwise equal, including the random numbers.
  EXPECT_EQ(found.losses, expected.losses);
  EXPECT_TRUE(at::equal(found.weight, expected.weight));
}

TEST(FailedRecording, AutomaticWarnsOnceWithTheReason) {
  RecorderLog log;
  testing::internal::CaptureStderr();
  train(failing_graph(GraphMode::automatic, log, refuse_to_record));
  const std::string errors = testing::internal::GetCapturedStderr();
  EXPECT_EQ(count(errors, "warning"), 1U) << errors;
  EXPECT_EQ(count(errors, kCaptureFailure), 1U) << errors;
  EXPECT_EQ(count(errors, "advice"), 0U) << errors;
}

/// The rehearsal has shown that the steps fit into memory without a recording.
TEST(FailedRecording, EveryModeContinuesWhenMemoryRunsOutInIt) {
  const Training expected = train([](const LinearModel&) { return nullptr; });
  for (const GraphMode mode : {GraphMode::automatic, GraphMode::on}) {
    RecorderLog log;
    const Training found = train(failing_graph(
        mode, log, [] { TORCH_CHECK_WITH(OutOfMemoryError, false, "Tried to allocate 7 GiB"); }));
    EXPECT_EQ(log.recordings, 1);
    EXPECT_EQ(found.losses, expected.losses);
    EXPECT_TRUE(at::equal(found.weight, expected.weight));
  }
}

TEST(FailedRecording, OnIsAnErrorThatSaysWhy) {
  RecorderLog log;
  try {
    train(failing_graph(GraphMode::on, log, refuse_to_record));
    FAIL() << "expected an error";
  } catch (const DeviceError& failure) {
    EXPECT_EQ(failure.exit_code(), ExitCode::environment);
    EXPECT_THAT(failure.what(), HasSubstr(kCaptureFailure));
    EXPECT_THAT(failure.what(), HasSubstr("training.cuda_graphs"));
  }
}

}  // namespace
}  // namespace precast::engine
