#include "framework/engine/rehearsal.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/api/single_rank.h"
#include "framework/core/error.h"
#include "framework/engine/out_of_memory.h"
#include "framework/engine/train_step.h"
#include "tests/support/fake_parts.h"
#include "tests/support/message_matchers.h"

namespace precast::engine {
namespace {

using test::LinearModel;
using test::Names;
using testing::ElementsAre;

constexpr const char* kAllocatorMessage = "Tried to allocate 7 GiB";

class NoUpdate final : public Optimizer {
 public:
  void step(double /*lr*/, const std::optional<Scaled>& /*scaled*/) override { ++steps; }
  int steps = 0;
};

/// Counts its calls in its state, draws random numbers as dropout does, and runs out of memory if a
/// batch has more than `max_pixels` pixels.
class LimitedMemoryModel final : public ImageModel {
 public:
  at::Tensor classify(const at::Tensor& images) override {
    seen.push_back((training_ ? "train " : "eval ") + std::to_string(images.size(0)) + " x " +
                   std::to_string(images.size(3)) + " px");
    if (images.size(0) * images.size(2) * images.size(3) > max_pixels)
      TORCH_CHECK_WITH(OutOfMemoryError, false, kAllocatorMessage);
    linear.steps_seen.add_(1);
    const at::Tensor kept = at::bernoulli(at::rand({images.size(0), 1, 1, 1}), 0.5);
    return linear.classify(images.to(at::kFloat) * kept);
  }
  [[nodiscard]] std::vector<NamedTensor> parameters() const override { return linear.parameters(); }
  [[nodiscard]] std::vector<NamedTensor> state() const override { return linear.state(); }
  void train(bool training) override { training_ = training; }
  void to(at::Device /*device*/, bool /*channels_last*/) override {}

  LinearModel linear{3};
  std::vector<std::string> seen;
  std::int64_t max_pixels = 1 << 30;

 private:
  bool training_ = false;
};

class RehearsalTest : public ::testing::Test {
 protected:
  RehearsalTest() {
    plan_.epochs = 4;
    plan_.global_batch_size = 4;
    plan_.image_size_px = {8, 8, 16, 12};
    plan_.channels_last = true;
    options_.train_batch = options_.val_batch = [](std::int64_t samples, std::int64_t size_px) {
      return make_batch(at::zeros({samples, 3, size_px, size_px}), at::zeros({samples}, at::kLong));
    };
    options_.val_batch_size = 5;
    options_.val_samples = 13;
  }
  void run() {
    rehearse(plan_, {model_, loss_, optimizer_, methods_, *ranks_, *sync_}, evaluator_, options_);
  }
  std::string error() {
    try {
      run();
    } catch (const Error& failure) {
      EXPECT_EQ(failure.exit_code(), ExitCode::out_of_memory);
      return failure.what();
    }
    return "no error";
  }

  TrainPlan plan_;
  LimitedMemoryModel model_;
  test::MeanCrossEntropy loss_;
  NoUpdate optimizer_;
  std::vector<NamedMethod> methods_;
  std::unique_ptr<Communicator> ranks_ = make_single_rank();
  std::unique_ptr<GradSync> sync_ = make_single_rank_sync();
  Evaluator evaluator_{{.image_size_px = 10, .flip_tta = true}};
  RehearsalOptions options_;
};

TEST_F(RehearsalTest, TriesTheLargestSizeThenEvaluationThenTheOthers) {
  run();
  EXPECT_THAT(model_.seen,
              ElementsAre("train 4 x 16 px", "eval 5 x 10 px", "eval 5 x 10 px", "eval 3 x 10 px",
                          "eval 3 x 10 px", "train 4 x 12 px", "train 4 x 8 px"));
}

TEST_F(RehearsalTest, TheMemoryOfStoredImagesIsTakenFirst) {
  options_.stored_image_bytes = std::uint64_t{1} << 60;
  EXPECT_THAT(error(), Names("1152921.5 TB", "cpu", "data.in_memory"));
  EXPECT_TRUE(model_.seen.empty());
}

TEST_F(RehearsalTest, AnErrorNamesTheMemoryOfStoredImages) {
  options_.stored_image_bytes = 2 << 20;
  model_.max_pixels = 0;
  EXPECT_THAT(error(), Names("4 images of 16 px", "2.1 MB", "data.in_memory"));
}

TEST_F(RehearsalTest, AShareSmallerThanABatchIsTriedAlone) {
  options_.val_samples = 3;
  plan_.image_size_px = {8};
  run();
  EXPECT_THAT(model_.seen, ElementsAre("train 4 x 8 px", "eval 3 x 10 px", "eval 3 x 10 px"));
}

TEST_F(RehearsalTest, MicroBatchesAreTriedAtTheirOwnSize) {
  plan_.micro_batches = 2;
  plan_.image_size_px = {8};
  run();
  EXPECT_EQ(model_.seen[0], "train 2 x 8 px");
  EXPECT_EQ(model_.seen[1], "train 2 x 8 px");
}

/// Two passes per step, like SAM.
class TwoPasses final : public Method, private StepStrategy {
 public:
  [[nodiscard]] StepStrategy* step_strategy() override { return this; }

 private:
  [[nodiscard]] at::Tensor run(Batch& batch, StepPasses& passes) override {
    return passes.forward_backward(batch, /*last=*/true);
  }
  void rehearse(Batch& batch, StepPasses& passes) override {
    static_cast<void>(passes.forward_backward(batch, /*last=*/false));
    static_cast<void>(run(batch, passes));
  }
};

/// A gradient synchronisation for ranks that do not exist: nothing may be sent.
class NoPeersSync final : public GradSync {
 public:
  void begin_backward(bool /*last*/) override { ADD_FAILURE() << "gradients are sent"; }
  void finish_backward() override {}
  void finish_step() override {}
};

TEST_F(RehearsalTest, AMethodThatReplacesTheStepIsTriedWithAllItsPasses) {
  methods_.push_back({"two_passes", std::make_unique<TwoPasses>()});
  sync_ = std::make_unique<NoPeersSync>();
  plan_.image_size_px = {8};
  run();
  EXPECT_EQ(model_.seen[0], "train 4 x 8 px");
  EXPECT_EQ(model_.seen[1], "train 4 x 8 px");
  for (const NamedTensor& parameter : model_.parameters())
    EXPECT_FALSE(parameter.tensor.grad().defined());
}

class CountedPasses final : public GradSync {
 public:
  void begin_backward(bool /*last*/) override { ++passes; }
  void finish_backward() override {}
  void finish_step() override {}
  int passes = 0;
};

TEST_F(RehearsalTest, AStepAfterAFailedRehearsalSendsItsGradients) {
  CountedPasses sync;
  TrainStep step(plan_, {model_, loss_, optimizer_, methods_, *ranks_, sync}, at::kCPU,
                 /*skip_nonfinite=*/false);
  Batch batch = options_.train_batch(4, 8);
  model_.max_pixels = 0;
  EXPECT_THROW(step.rehearse(batch), c10::OutOfMemoryError);
  model_.max_pixels = 1 << 30;
  step.run(batch, /*lr=*/0);
  EXPECT_EQ(sync.passes, 1);
}

TEST_F(RehearsalTest, LeavesNoTrace) {
  at::manual_seed(3);
  const at::Tensor expected_draw = at::rand({4});
  at::manual_seed(3);
  const at::Tensor weight = model_.linear.weight.detach().clone();
  run();
  EXPECT_TRUE(at::rand({4}).equal(expected_draw));
  EXPECT_EQ(model_.linear.steps_seen.item<std::int64_t>(), 0);
  EXPECT_TRUE(model_.linear.weight.detach().equal(weight));
  EXPECT_FALSE(model_.linear.weight.grad().defined());
  EXPECT_EQ(optimizer_.steps, 0);
}

TEST_F(RehearsalTest, ATrainingStepThatDoesNotFitNamesItsEpochAndWhatToLower) {
  model_.max_pixels = 4 * 15 * 15;
  EXPECT_THAT(error(), Names("4 images", "16 px", "epoch 3", "training.batch_size",
                             "training.micro_batches", 1, kAllocatorMessage));
}

TEST_F(RehearsalTest, AnEvaluationThatDoesNotFitNamesItsBatchAndWhenItWouldHaveRun) {
  options_.val_batch_size = 500;
  options_.val_samples = 1000;
  model_.max_pixels = 4 * 16 * 16;
  EXPECT_THAT(error(), Names("500 images", "10 px", "epoch 1", "validation.batch_size"));
  options_.evaluate_each_epoch = false;
  EXPECT_THAT(error(), Names("500 images", "10 px", "epoch 4", "validation.batch_size"));
}

TEST(OutOfMemory, IsRecognisedByTypeOrByTheMessageOfALibrary) {
  const auto torch = [](const std::string& text) { return c10::Error(text, nullptr); };
  EXPECT_TRUE(is_out_of_memory(std::bad_alloc()));
  EXPECT_TRUE(is_out_of_memory(torch("DefaultCPUAllocator: can't allocate memory")));
  EXPECT_TRUE(is_out_of_memory(torch("CUDA error: out of memory")));
  EXPECT_TRUE(is_out_of_memory(torch("cuDNN error: CUDNN_STATUS_ALLOC_FAILED")));
  EXPECT_FALSE(is_out_of_memory(torch("mat1 and mat2 shapes cannot be multiplied")));
  EXPECT_FALSE(is_out_of_memory(std::runtime_error("out of memory of last week")));
}

TEST(ErrorOfDevice, IsRecognisedByTypeOrAsOutOfMemory) {
  const c10::SourceLocation here = {__func__, __FILE__, __LINE__};
  EXPECT_TRUE(is_device_error(c10::NotImplementedError(here, "no such kernel")));
  EXPECT_TRUE(is_device_error(c10::AcceleratorError(here, /*code=*/700, "illegal access")));
  EXPECT_TRUE(is_device_error(c10::Error(here, "CUDA error: out of memory")));
  EXPECT_FALSE(is_device_error(c10::Error(here, "shapes cannot be multiplied")));
}

}  // namespace
}  // namespace precast::engine
