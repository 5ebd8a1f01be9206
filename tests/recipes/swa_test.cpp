#include <gtest/gtest.h>

#include "framework/api/method.h"
#include "framework/api/run_facts.h"
#include "tests/recipes/make_method.h"
#include "tests/recipes/norm_model.h"
#include "tests/recipes/recipe_golden.h"
#include "tests/recipes/saved_state.h"

namespace precast::test {
namespace {

constexpr std::int64_t kStepsPerEpoch = 3;

/// Runs the steps of the epochs from `first_epoch` to `epochs` - 1. The method averages only the
/// weights at the end of an epoch.
void train(Method& swa, NormModel& model, std::int64_t first_epoch, std::int64_t epochs) {
  for (std::int64_t epoch = first_epoch; epoch < epochs; ++epoch) {
    swa.on_epoch_begin(epoch, model);
    for (std::int64_t step = 0; step < kStepsPerEpoch; ++step) {
      model.set(static_cast<std::uint32_t>(step + 1 == kStepsPerEpoch ? epoch : 77 + step));
      swa.on_step_end(model, epoch * kStepsPerEpoch + step);
    }
  }
}

TEST(SwaTest, EvaluatesTorchsMeanOfTheEpochsThatComposerTakes) {
  for (nlohmann::json options : method_golden()["swa"]) {
    const auto epochs = options["epochs"].get<std::int64_t>();
    const nlohmann::json averages = options["averages"];
    options.erase("epochs");
    options.erase("averages");
    NormModel model;
    const auto swa = make_method("swa", options.dump());
    swa->on_run({.epochs = epochs, .steps_per_epoch = kStepsPerEpoch});
    swa->on_train_begin(model);
    train(*swa, model, 0, epochs);
    const std::vector<double> weights = model.floats();
    {
      const auto guard = swa->eval_scope(model);
      expect_near(model.floats(), averages);
    }
    EXPECT_EQ(model.floats(), weights) << "bit for bit";
  }
}

TEST(SwaTest, EvaluatesTheWeightsThemselvesBeforeTheStart) {
  NormModel model;
  const auto swa = make_method("swa", "{start: 0.5}");
  swa->on_run({.epochs = 4, .steps_per_epoch = kStepsPerEpoch});
  swa->on_train_begin(model);
  train(*swa, model, 0, 1);
  EXPECT_EQ(swa->eval_scope(model), nullptr);
  train(*swa, model, 1, 2);
  EXPECT_NE(swa->eval_scope(model), nullptr);
}

TEST(SwaTest, ARestoredStateContinuesBitForBit) {
  NormModel model;
  const auto whole = make_method("swa", "{start: 0.2}");
  const auto resumed = make_method("swa", "{start: 0.2}");
  for (Method* swa : {whole.get(), resumed.get()}) {
    swa->on_run({.epochs = 8, .steps_per_epoch = kStepsPerEpoch});
    swa->on_train_begin(model);
  }
  train(*whole, model, 0, 5);
  SavedState(*whole).restore_into(*resumed);
  train(*whole, model, 5, 8);
  train(*resumed, model, 5, 8);
  EXPECT_TRUE(SavedState(*resumed) == SavedState(*whole));
}

TEST(SwaTest, ARunThatStoppedInTheEvaluationOfTheFirstAveragedEpochKeepsItsMean) {
  NormModel model;
  const auto whole = make_method("swa", "{start: 0.5}");
  const auto resumed = make_method("swa", "{start: 0.5}");
  for (Method* swa : {whole.get(), resumed.get()}) {
    swa->on_run({.epochs = 4, .steps_per_epoch = kStepsPerEpoch});
    swa->on_train_begin(model);
  }
  train(*whole, model, 0, 2);
  SavedState(*whole).restore_into(*resumed);
  // Epoch 1 has no steps left, so the run evaluates at once.
  resumed->on_epoch_begin(1, model);
  EXPECT_NE(resumed->eval_scope(model), nullptr);
  for (Method* swa : {whole.get(), resumed.get()}) train(*swa, model, 2, 4);
  EXPECT_TRUE(SavedState(*resumed) == SavedState(*whole));
}

TEST(SwaTest, AContinuedRunDropsTheMeanOfTheShorterRun) {
  NormModel model;
  const auto started = [&](std::int64_t epochs) {
    auto swa = make_method("swa", "{start: 0.5}");
    swa->on_run({.epochs = epochs, .steps_per_epoch = kStepsPerEpoch});
    swa->on_train_begin(model);
    return swa;
  };
  const auto finished = started(4);
  train(*finished, model, 0, 4);
  EXPECT_NE(finished->eval_scope(model), nullptr);
  const auto continued = started(12);
  SavedState(*finished).restore_into(*continued);
  train(*continued, model, 4, 5);
  EXPECT_EQ(continued->eval_scope(model), nullptr) << "epoch 6 is the first to be averaged";
  train(*continued, model, 5, 6);
  EXPECT_NE(continued->eval_scope(model), nullptr);
  train(*continued, model, 6, 12);
  const auto fresh = started(12);
  train(*fresh, model, 0, 12);
  EXPECT_TRUE(SavedState(*continued) == SavedState(*fresh));
}

}  // namespace
}  // namespace precast::test
