#include "framework/engine/trainer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "framework/api/run_facts.h"
#include "framework/api/single_rank.h"
#include "framework/api/step_strategy.h"
#include "framework/core/error.h"
#include "framework/engine/train_progress.h"
#include "tests/support/fake_parts.h"
#include "tests/support/lone_rank.h"
#include "tests/support/message_matchers.h"
#include "tests/support/program.h"

namespace precast::engine {
namespace {

using test::ColourSource;
using test::LinearModel;
using test::MemorySink;
using test::Names;
using test::RecordingMethod;
using test::RisingLr;

class PlainDescent final : public Optimizer {
 public:
  explicit PlainDescent(Model& model) : model_(model) {}
  void step(double lr, const std::optional<Scaled>& /*scaled*/) override {
    rates.push_back(lr);
    for (NamedTensor& parameter : parameters()) {
      const at::Tensor data = parameter.tensor.detach();
      data.sub_(parameter.tensor.grad() * lr);
    }
  }
  std::vector<double> rates;

 private:
  std::vector<NamedTensor>& parameters() {
    parameters_ = model_.parameters();
    return parameters_;
  }
  Model& model_;
  std::vector<NamedTensor> parameters_;
};

class TrainerTest : public ::testing::Test {
 protected:
  TrainerTest() {
    plan_.epochs = 2;
    plan_.steps_per_epoch = 3;
    plan_.global_batch_size = 4;
    plan_.image_size_px = {4, 8};
    plan_.schedule = std::make_shared<RisingLr>(1.0);
  }

  TrainSummary run(TrainerOptions options = {}) {
    Trainer trainer(plan_,
                    {.model = model_,
                     .loss = loss_,
                     .optimizer = optimizer_,
                     .methods = methods_,
                     .train_source = train_,
                     .val_source = val_,
                     .evaluator = evaluator_,
                     .ranks = *ranks_,
                     .sync = *sync_,
                     .sinks = {&sink_}},
                    options);
    trainer.start();
    return trainer.run();
  }

  TrainPlan plan_;
  LinearModel model_{3};
  test::MeanCrossEntropy loss_;
  PlainDescent optimizer_{model_};
  std::vector<NamedMethod> methods_;
  ColourSource train_{{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}, 4};
  ColourSource val_{{0, 1, 2, 2, 1}, 2};
  Evaluator evaluator_{{.image_size_px = 16, .flip_tta = false}};
  std::unique_ptr<Communicator> ranks_ = make_single_rank();
  std::unique_ptr<GradSync> sync_ = make_single_rank_sync();
  MemorySink sink_;
};

TEST_F(TrainerTest, LearnsAndEvaluatesEverySampleOnce) {
  const TrainSummary summary = run();
  EXPECT_EQ(summary.final_eval->samples, 5);
  EXPECT_EQ(summary.final_eval->top_1_correct, 5);
  EXPECT_EQ(summary.final_eval->top_5_correct, 5);
  EXPECT_EQ(summary.images_trained, 24);
  EXPECT_LT(summary.train_loss, std::log(3.0));
}

TEST_F(TrainerTest, SourcesGetTheEpochAndItsImageSize) {
  run();
  ASSERT_EQ(train_.requests.size(), 2U);
  EXPECT_EQ(train_.requests[1].epoch, 1);
  EXPECT_EQ(train_.requests[0].image_size_px, 4);
  EXPECT_EQ(train_.requests[1].image_size_px, 8);
  ASSERT_EQ(val_.requests.size(), 2U);
  EXPECT_EQ(val_.requests[0].image_size_px, 16);
}

TEST_F(TrainerTest, RatesAreInterpolatedBetweenEpochs) {
  run();
  const double expected[] = {1, 1 + 1.0 / 3, 1 + 2.0 / 3, 2, 2 + 1.0 / 3, 2 + 2.0 / 3};
  ASSERT_EQ(optimizer_.rates.size(), 6U);
  for (std::size_t step = 0; step < 6; ++step)
    EXPECT_DOUBLE_EQ(optimizer_.rates[step], expected[step]);
}

TEST_F(TrainerTest, HooksRunInTheOrderOfAStepAndMethodsInTheRecipes) {
  plan_.epochs = 1;
  plan_.steps_per_epoch = 2;
  train_ = ColourSource({0, 1}, 1);
  std::vector<std::string> calls;
  methods_.push_back({"first", std::make_unique<RecordingMethod>(calls)});
  run();
  EXPECT_EQ(calls, (std::vector<std::string>{"begin 0", "batch 0", "gradients", "step 0", "batch 1",
                                             "gradients", "step 1", "eval", "/eval"}));
}

TEST_F(TrainerTest, LogLevelZeroEvaluatesOnlyAtTheEnd) {
  run({.evaluate_each_epoch = false});
  EXPECT_EQ(val_.requests.size(), 1U);
  ASSERT_EQ(sink_.records.size(), 2U);
  EXPECT_EQ(nlohmann::json::parse(sink_.records[0]).count("top_1"), 0U);
  const auto last = nlohmann::json::parse(sink_.records[1]);
  EXPECT_EQ(last.at("top_1"), 1.0);
  for (const char* key : {"current_lr", "top_5", "val_time", "train_loss", "epoch"})
    EXPECT_EQ(last.count(key), 1U) << key;
}

TEST_F(TrainerTest, EachEpochIsOneLineForPeopleAndEpochsCountFromOne) {
  ::testing::internal::CaptureStderr();
  run();
  const std::string printed = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(test::occurrences(printed, "\n"), 2) << printed;
  const auto last = nlohmann::json::parse(sink_.records[1]);
  EXPECT_EQ(last.at("epoch"), 1) << "counted from 0, as in FFCV's log";
  EXPECT_THAT(printed, Names("epoch 1/2", "epoch 2/2", "top-1 1.0000",
                             fmt::format("train loss {:.4f}", last.at("train_loss").get<double>()),
                             fmt::format("val loss {:.4f}", last.at("val_loss").get<double>())));
}

TEST_F(TrainerTest, AnEpochWithoutAnEvaluationHasALineToo) {
  ::testing::internal::CaptureStderr();
  run({.evaluate_each_epoch = false});
  const std::string printed = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(printed, Names("epoch 1/2", "epoch 2/2"));
  EXPECT_EQ(test::occurrences(printed, "top-1"), 1);
}

TEST(TrainProgressTest, TheLineOfAnEpochNamesTheBestOne) {
  TrainPlan plan;
  plan.epochs = 16;
  ColourSource source({0}, 1);
  TrainProgress progress(plan, source, true);
  TrainState state;
  state.epoch = 4;
  progress.begin_epoch(state);
  state.train_loss = 1.25;
  state.images_trained = 1000;
  state.train_seconds = 50;
  state.best_value = 0.75;
  state.best_epoch = 2;
  EvalResult eval{.samples = 8, .top_1_correct = 4, .seconds = 15};
  EXPECT_THAT(progress.epoch_line(state, eval),
              Names("epoch 5/16", "train loss 1.2500", "top-1 0.5000", "0.7500", "epoch 3",
                    "20 img/s", "1:05"));
  state.best_epoch = 4;
  EXPECT_EQ(test::occurrences(progress.epoch_line(state, eval), "epoch"), 1);
}

TEST(TrainProgressTest, TheLineOfAnEpochCountsItsSkippedSteps) {
  const TrainPlan plan;
  ColourSource source({0}, 1);
  const TrainProgress progress(plan, source, true);
  TrainState state;
  state.skipped_steps = 9;
  EXPECT_THAT(progress.epoch_line(state, std::nullopt), testing::Not(Names("skipped")));
  state.epoch_skipped_steps = 3;
  EXPECT_THAT(progress.epoch_line(state, std::nullopt), Names("3 steps skipped"));
}

TEST_F(TrainerTest, StepsAreLoggedWithLossAndRate) {
  run({.log_every = 2});
  std::vector<std::int64_t> steps;
  for (const std::string& record : sink_.records) {
    const auto parsed = nlohmann::json::parse(record);
    if (parsed.contains("step")) steps.push_back(parsed.at("step"));
  }
  EXPECT_EQ(steps, (std::vector<std::int64_t>{0, 2, 4}));
  const auto first = nlohmann::json::parse(sink_.records[0]);
  EXPECT_NEAR(first.at("loss").get<double>(), std::log(3.0), 1e-6);
  EXPECT_EQ(first.at("current_lr"), 1.0);
}

/// Keeps what on_run() says about the run.
class FactsKeeper final : public Method {
 public:
  explicit FactsKeeper(RunFacts& facts) : facts_(facts) {}
  void on_run(const RunFacts& run) override { facts_ = run; }

 private:
  RunFacts& facts_;
};

TEST_F(TrainerTest, MethodsLearnTheFactsOfThePlan) {
  RunFacts facts;
  methods_.push_back({"keeper", std::make_unique<FactsKeeper>(facts)});
  plan_.seed = 5;
  plan_.repeats = 3;
  run();
  EXPECT_EQ(facts.seed, 5U);
  EXPECT_EQ(facts.epochs, 2);
  EXPECT_EQ(facts.steps_per_epoch, 3);
  EXPECT_EQ(facts.repeats, 3);
}

/// A single rank that waits before each sum of tensors, as for a device that still has work to do.
class SlowRank final : public test::LoneRank {
 public:
  void all_reduce_sum(std::vector<at::Tensor> /*tensors*/) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
};

TEST_F(TrainerTest, TheTimeOfAnEpochContainsTheWaitForItsLosses) {
  plan_.epochs = 1;
  ranks_ = std::make_unique<SlowRank>();
  // Two sums over the ranks, of the losses and of their number, wait 0.1 s each.
  EXPECT_GE(run().train_seconds, 0.2);
  EXPECT_GE(nlohmann::json::parse(sink_.records.back()).at("train_time").get<double>(), 0.2);
}

TEST_F(TrainerTest, NoEpochsMeansEvaluationAlone) {
  plan_.epochs = 0;
  plan_.image_size_px.clear();
  const TrainSummary summary = run();
  EXPECT_EQ(summary.final_eval->samples, 5);
  EXPECT_TRUE(train_.requests.empty());
  EXPECT_TRUE(std::isnan(summary.train_loss));
  EXPECT_EQ(summary.eval_seconds, summary.final_eval->seconds);
}

/// Runs one pass for each entry of `lasts`, and passes the entry as `last`.
class ListedPasses final : public Method, private StepStrategy {
 public:
  explicit ListedPasses(std::vector<bool> lasts) : lasts_(std::move(lasts)) {}
  [[nodiscard]] StepStrategy* step_strategy() override { return this; }

 private:
  [[nodiscard]] at::Tensor run(Batch& batch, StepPasses& passes) override {
    at::Tensor loss = at::zeros({});
    for (const bool last : lasts_) loss = passes.forward_backward(batch, last);
    return loss;
  }
  std::vector<bool> lasts_;
};

TEST_F(TrainerTest, OnlyTheLastPassOfAStepIsTheLast) {
  for (const std::vector<bool>& lasts :
       {std::vector<bool>{true}, {false, true}, {}, {false}, {true, false}, {true, true}}) {
    SCOPED_TRACE(testing::PrintToString(lasts));
    methods_.clear();
    methods_.push_back({"listed", std::make_unique<ListedPasses>(lasts)});
    if (lasts == std::vector{true} || lasts == std::vector{false, true}) {
      EXPECT_NO_THROW(run());
    } else {
      EXPECT_THAT([&] { run(); }, testing::ThrowsMessage<Error>(Names("listed", "last")));
    }
  }
}

TEST_F(TrainerTest, DivergenceIsAnErrorOfItsOwnKind) {
  plan_.schedule = std::make_shared<RisingLr>(std::numeric_limits<double>::infinity());
  try {
    run();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::diverged);
  }
}

}  // namespace
}  // namespace precast::engine
