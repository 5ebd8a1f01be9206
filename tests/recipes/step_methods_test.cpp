#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "framework/api/run_facts.h"
#include "framework/api/step_strategy.h"
#include "framework/api/train_plan.h"
#include "framework/core/error.h"
#include "tests/recipes/make_method.h"
#include "tests/recipes/recipe_golden.h"
#include "tests/recipes/toy_model.h"
#include "tests/support/fake_parts.h"
#include "tests/support/message_matchers.h"
#include "tests/support/noise_tensor.h"

namespace precast::test {
namespace {

using ::testing::ThrowsMessage;

TEST(StepMethodsTest, MethodsSayWhetherTheWorkOfAStepChangesDuringTheRun) {
  const auto varies = [](const std::string& name, const std::string& options = "{}") {
    return make_method(name, options)->varies_between_steps();
  };
  EXPECT_TRUE(varies("batch_resize"));
  EXPECT_FALSE(varies("batch_resize", "{initial_scale: 1}"));
  EXPECT_FALSE(varies("batch_resize", "{delay_fraction: 1, finetune_fraction: 0}"));
  EXPECT_TRUE(varies("selective_backprop"));
  EXPECT_TRUE(varies("selective_backprop", "{start: 0, end: 1}"));
  EXPECT_FALSE(varies("selective_backprop", "{start: 0, end: 1, interrupt: 0}"));
  EXPECT_FALSE(varies("selective_backprop", "{interrupt: 1}"));
  EXPECT_FALSE(varies("selective_backprop", "{keep: 1}"));
  EXPECT_TRUE(varies("layer_freezing"));
  EXPECT_FALSE(varies("layer_freezing", "{freeze_level: 0}"));
  EXPECT_FALSE(varies("sam"));
  EXPECT_TRUE(varies("sam", "{interval: 2}"));
  EXPECT_FALSE(varies("sam", "{interval: 2, rho: 0}"));
  EXPECT_FALSE(varies("progressive_resize"));
  EXPECT_FALSE(varies("stochastic_depth"));
}

class CrossEntropy final : public TargetLoss {
 public:
  at::Tensor mean(const at::Tensor& logits, const at::Tensor& labels) const override {
    return at::cross_entropy_loss(logits, labels);
  }
};

/// The passes of a linear classifier of the mean colour; records the calls.
class LinearPasses final : public StepPasses {
 public:
  at::Tensor forward_backward(Batch& batch, bool last) override {
    lasts.push_back(last);
    labels = batch.labels();
    weights.push_back(net.weight.detach().clone());
    net.weight.mutable_grad().reset();
    const at::Tensor loss = loss_(net.forward(batch), batch);
    (loss * scale).backward();
    return loss.detach();
  }
  at::Tensor forward(const Batch& batch) override {
    const at::NoGradGuard no_grad;
    selected_from = batch.images();
    return net.forward(batch);
  }
  Model& model() override { return net; }
  [[nodiscard]] const Loss& loss() const override { return loss_; }

  LinearModel net{5};
  double scale = 1;
  std::vector<bool> lasts;
  /// The weights at each backward pass.
  std::vector<at::Tensor> weights;
  at::Tensor labels, selected_from;

 private:
  CrossEntropy loss_;
};

Batch batch_of(const at::Tensor& images, const at::Tensor& labels) {
  return {.fields = {{"image", images}, {"label", labels}},
          .sample_ids = std::vector<std::uint64_t>(static_cast<std::size_t>(images.size(0)))};
}

/// The loss of a sample is the value of its pixels, which are all equal.
class ValueLoss final : public TargetLoss {
 public:
  at::Tensor mean(const at::Tensor& logits, const at::Tensor& /*labels*/) const override {
    return logits.mean();
  }
};

class ValuePasses final : public StepPasses {
 public:
  at::Tensor forward_backward(Batch& batch, bool /*last*/) override {
    kept = batch.labels();
    return batch.images().mean();
  }
  at::Tensor forward(const Batch& batch) override { return batch.images().mean({2, 3}); }
  Model& model() override { return net_; }
  [[nodiscard]] const Loss& loss() const override { return loss_; }
  at::Tensor kept;

 private:
  LinearModel net_{5};
  ValueLoss loss_;
};

TEST(SamTest, StepsAreComposers) {
  for (const auto& golden : method_golden()["sam"]) {
    nlohmann::json options = golden;
    options.erase("losses");
    options.erase("weight");
    const auto sam = make_method("sam", options.dump());
    LinearPasses passes;
    passes.net.weight.detach().copy_(noise_tensor(9, {5, 3}));
    for (std::uint32_t step = 0; step < 6; ++step) {
      Batch batch =
          batch_of(noise_tensor(50 + step, {8, 3, 2, 2}, 4), at::remainder(at::arange(8), 5));
      sam->on_batch(batch, step);
      const at::Tensor loss = sam->step_strategy()->run(batch, passes);
      EXPECT_NEAR(loss.item<double>(), golden["losses"][step].get<double>(), 1e-5) << step;
      passes.net.weight.detach().sub_(passes.net.weight.grad() * 0.5);
    }
    expect_near(flat({passes.net.weight}), golden["weight"], 1e-5);
  }
}

TEST(SamTest, PutsTheWeightsBackBitForBitAndAveragesOnlyTheSecondGradient) {
  const auto sam = make_method("sam");
  LinearPasses passes;
  passes.net.weight.detach().copy_(noise_tensor(9, {5, 3}));
  const at::Tensor before = passes.net.weight.detach().clone();
  Batch batch = batch_of(noise_tensor(50, {8, 3, 2, 2}), at::remainder(at::arange(8), 5));
  static_cast<void>(sam->step_strategy()->run(batch, passes));
  EXPECT_TRUE(at::equal(passes.net.weight, before));
  EXPECT_EQ(passes.lasts, (std::vector<bool>{false, true}));
  EXPECT_NEAR((passes.weights[1] - before).norm().item<double>(), 0.05, 1e-6) << "rho";
}

TEST(SamTest, RehearsesTheStepThatClimbs) {
  const auto sam = make_method("sam", "{interval: 10}");
  LinearPasses passes;
  passes.net.weight.detach().copy_(noise_tensor(9, {5, 3}));
  const at::Tensor before = passes.net.weight.detach().clone();
  Batch batch = batch_of(noise_tensor(50, {8, 3, 2, 2}), at::remainder(at::arange(8), 5));
  sam->step_strategy()->rehearse(batch, passes);
  EXPECT_EQ(passes.lasts, (std::vector<bool>{false, true}));
  EXPECT_TRUE(at::equal(passes.net.weight, before));
}

TEST(SamTest, AGradientScalersFactorCancels) {
  std::vector<at::Tensor> climbed;
  for (const double scale : {1.0, 65536.0}) {
    const auto sam = make_method("sam");
    LinearPasses passes;
    passes.scale = scale;
    Batch batch = batch_of(noise_tensor(50, {8, 3, 2, 2}), at::remainder(at::arange(8), 5));
    static_cast<void>(sam->step_strategy()->run(batch, passes));
    climbed.push_back(passes.weights[1]);
  }
  EXPECT_TRUE(at::allclose(climbed[0], climbed[1], 1e-4, 1e-7));
}

TEST(SamTest, ANonFiniteGradientCausesNoAscent) {
  const auto sam = make_method("sam");
  LinearPasses passes;
  passes.scale = std::numeric_limits<double>::infinity();
  Batch batch = batch_of(noise_tensor(50, {8, 3, 2, 2}), at::remainder(at::arange(8), 5));
  static_cast<void>(sam->step_strategy()->run(batch, passes));
  EXPECT_TRUE(at::equal(passes.weights[0], passes.weights[1]));
}

/// A run of 40 steps. Only steps between 25 % and 80 % of the run may select samples.
std::unique_ptr<Method> selective(const std::string& more) {
  auto method = make_method("selective_backprop", "{start: 0.25, end: 0.8, " + more + "}");
  method->on_run({.seed = 3, .epochs = 4, .steps_per_epoch = 10});
  return method;
}

TEST(SelectiveBackpropTest, SelectsInTheStepsThatComposerSelectsIn) {
  const nlohmann::json& runs = method_golden()["selective_backprop"]["runs"];
  const int interrupts[] = {0, 2, 3};
  for (std::size_t run = 0; run < 3; ++run) {
    const auto method = selective("interrupt: " + std::to_string(interrupts[run]));
    for (std::int64_t step = 0; step < 40; ++step) {
      LinearPasses passes;
      Batch batch = batch_of(noise_tensor(50, {8, 3, 2, 2}), at::remainder(at::arange(8), 5));
      method->on_batch(batch, step);
      static_cast<void>(method->step_strategy()->run(batch, passes));
      const bool selected = passes.labels.size(0) < 8;
      EXPECT_EQ(selected, runs[run][static_cast<std::size_t>(step)].get<bool>()) << step;
      EXPECT_EQ(passes.lasts, (std::vector<bool>{true}));
    }
  }
}

TEST(SelectiveBackpropTest, KeepsSamplesAsOftenAsComposerDoes) {
  const nlohmann::json& golden = method_golden()["selective_backprop"];
  const auto losses = golden["losses"].get<std::vector<float>>();
  const auto samples = static_cast<std::int64_t>(losses.size());
  const at::Tensor images =
      at::tensor(losses).view({samples, 1, 1, 1}).expand({samples, 1, 2, 2}).contiguous();
  constexpr std::int64_t kDraws = 4000;
  for (const auto& item : golden["cases"]) {
    const auto method =
        make_method("selective_backprop",
                    "{start: 0, end: 1, interrupt: 0, keep: " + item["keep"].dump() + "}");
    method->on_run({.seed = 3, .epochs = 1, .steps_per_epoch = kDraws});
    std::vector<double> counts(losses.size());
    ValuePasses passes;
    for (std::int64_t step = 0; step < kDraws; ++step) {
      Batch batch = batch_of(images, at::arange(samples));
      method->on_batch(batch, step);
      static_cast<void>(method->step_strategy()->run(batch, passes));
      const auto* kept = passes.kept.const_data_ptr<std::int64_t>();
      const std::set<std::int64_t> distinct(kept, kept + passes.kept.numel());
      ASSERT_EQ(distinct.size(), item["kept"].get<std::size_t>());
      for (const std::int64_t sample : distinct) counts.at(static_cast<std::size_t>(sample)) += 1;
    }
    for (double& count : counts) count /= kDraws;
    // 0.04 is five standard deviations of 4000 draws.
    expect_near(counts, item["share"], 0.04);
  }
}

TEST(SelectiveBackpropTest, KeepsASampleOfTheSmallestBatch) {
  for (const std::int64_t samples : {1, 2}) {
    const auto method = selective("interrupt: 0, keep: 0.3");
    LinearPasses passes;
    Batch batch = batch_of(noise_tensor(3, {samples, 3, 2, 2}), at::arange(samples));
    method->on_batch(batch, 20);
    static_cast<void>(method->step_strategy()->run(batch, passes));
    EXPECT_EQ(passes.labels.size(0), 1);
  }
}

TEST(SelectiveBackpropTest, SelectsOnComposersSmallImages) {
  const nlohmann::json& golden = method_golden()["selective_backprop"];
  const auto method = selective("interrupt: 0, scale_factor: 0.6");
  LinearPasses passes;
  Batch batch = batch_of(noise_tensor(3, {4, 3, 10, 14}), at::arange(4));
  method->on_batch(batch, 20);
  static_cast<void>(method->step_strategy()->run(batch, passes));
  EXPECT_EQ(passes.selected_from.sizes().vec(),
            golden["small_shape"].get<std::vector<std::int64_t>>());
  expect_near(flat({passes.selected_from}), golden["small"], 1e-5);
}

TEST(SelectiveBackpropTest, SelectsOnSmallImagesOfEachView) {
  /// Records the sizes of all inputs.
  class Recording final : public StepPasses {
   public:
    at::Tensor forward_backward(Batch& /*batch*/, bool /*last*/) override { return at::zeros({}); }
    at::Tensor forward(const Batch& batch) override {
      for (std::size_t i = 0; i < batch.inputs.size(); ++i)
        sizes.push_back(batch.input(i).sizes().vec());
      return net_.forward(batch);
    }
    Model& model() override { return net_; }
    [[nodiscard]] const Loss& loss() const override { return loss_; }
    std::vector<std::vector<std::int64_t>> sizes;

   private:
    LinearModel net_{5};
    CrossEntropy loss_;
  };
  const auto method = selective("interrupt: 0, scale_factor: 0.5");
  EXPECT_EQ(method->smallest_side(10), 5);
  const at::Tensor images = noise_tensor(3, {4, 3, 10, 14});
  Batch batch{.fields = {{"image", images},
                         {"label", at::arange(4)},
                         {"view2", images},
                         {"size", at::zeros({4, 2})}},
              .sample_ids = {},
              .inputs = {0, 2, 3, 2}};
  Recording passes;
  method->on_batch(batch, 20);
  static_cast<void>(method->step_strategy()->run(batch, passes));
  using Sizes = std::vector<std::int64_t>;
  EXPECT_THAT(passes.sizes, ::testing::ElementsAre(Sizes{4, 3, 5, 7}, Sizes{4, 3, 5, 7},
                                                   Sizes{4, 2}, Sizes{4, 3, 5, 7}));
}

TEST(SelectiveBackpropTest, RefusesToMakeImagesOfIntegersSmaller) {
  const auto method = selective("interrupt: 0, scale_factor: 0.5");
  Batch batch{.fields = {{"image", noise_tensor(3, {4, 3, 10, 14})},
                         {"label", at::arange(4)},
                         {"view2", at::zeros({4, 3, 10, 14}, at::kLong)}},
              .sample_ids = {},
              .inputs = {0, 2}};
  LinearPasses passes;
  method->on_batch(batch, 20);
  EXPECT_THAT([&] { static_cast<void>(method->step_strategy()->run(batch, passes)); },
              ThrowsMessage<ConfigError>(Names("selective_backprop", "view2", "Long")));
}

TEST(SelectiveBackpropTest, TheNumberOfSamplesIsRoundedAsComposers) {
  // int(0.29 * 100) is 28 in Python, too.
  const auto method = selective("interrupt: 0, keep: 0.29");
  LinearPasses passes;
  Batch batch = batch_of(noise_tensor(3, {100, 3, 2, 2}), at::remainder(at::arange(100), 5));
  method->on_batch(batch, 20);
  static_cast<void>(method->step_strategy()->run(batch, passes));
  EXPECT_EQ(passes.labels.size(0), 28);
}

TEST(SelectiveBackpropTest, ImagesKeepTheirSizeUnlessTheSelectionUsesSmallOnes) {
  for (const char* options :
       {"{}", "{scale_factor: 0.5, keep: 1}", "{scale_factor: 0.5, start: 0.5, end: 0.5}"})
    EXPECT_EQ(make_method("selective_backprop", options)->smallest_side(10), 10) << options;
}

TEST(SelectiveBackpropTest, RefusesSmallImagesWithMasks) {
  TrainPlan plan;
  plan.model.targets = TargetKind::class_mask;
  EXPECT_THAT([&] { make_method("selective_backprop", "{scale_factor: 0.5}")->configure(plan); },
              ThrowsMessage<ConfigError>(Names("selective_backprop", "scale_factor", 1, "0.5")));
  EXPECT_NO_THROW(make_method("selective_backprop")->configure(plan));
}

TEST(SelectiveBackpropTest, RefusesMicroBatchesWithAReason) {
  TrainPlan plan;
  plan.micro_batches = 2;
  EXPECT_THAT(
      [&] { make_method("selective_backprop")->configure(plan); },
      ThrowsMessage<ConfigError>(Names("selective_backprop", "training.micro_batches", 1, 2)));
}

}  // namespace
}  // namespace precast::test
