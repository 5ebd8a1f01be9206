// Plans that methods, schedules and options of plug-ins must not produce.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "framework/core/error.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tools/app/plan.h"
#include "tools/app/recipe.h"

namespace precast::tools {
namespace {

using test::Names;

/// A method whose configure() is a function.
class PlanEditor final : public Method {
 public:
  using Edit = std::function<void(TrainPlan&)>;
  explicit PlanEditor(Edit edit) : edit_(std::move(edit)) {}
  void configure(TrainPlan& plan) const override { edit_(plan); }

 private:
  Edit edit_;
};

/// A schedule whose rate is `rate` at the start of epoch `at` or, if `in_step`, in the last step of
/// that epoch. All its other rates are 1.
class OneRate final : public Schedule {
 public:
  OneRate(double rate, std::int64_t at, bool in_step) : rate_(rate), at_(at), in_step_(in_step) {}
  [[nodiscard]] double lr(std::int64_t epoch) const override {
    return epoch == at_ && !in_step_ ? rate_ : 1;
  }
  [[nodiscard]] double step_lr(std::int64_t epoch, std::int64_t step,
                               std::int64_t steps_per_epoch) const override {
    return epoch == at_ && in_step_ && step + 1 == steps_per_epoch ? rate_ : 1;
  }

 private:
  double rate_;
  std::int64_t at_;
  bool in_step_;
};

struct TakenOptions {
  double lr = 3;
  void options(Schema& schema) { schema.add("lr", &lr, "a rate"); }
};

class PlanLimitsTest : public testing::Test {
 protected:
  Recipe load(const std::string& text) {
    std::ofstream(folder_ / "r.yaml") << text;
    return load_recipe(folder_ / "r.yaml", {}, registries_);
  }
  /// The error for a recipe; empty if it is accepted.
  std::string refusal(const std::string& text, std::int64_t samples = 100) {
    try {
      const Recipe recipe = load(text);
      static_cast<void>(make_plan(requested_run(recipe), registries_, samples, 10));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  test::TemporaryFolder folder_;
  Registries registries_ = make_registries();
};

TEST_F(PlanLimitsTest, InvalidEditsNameTheMethodAndTheField) {
  PlanEditor::Edit edit;
  registries_.methods.add("editor", "", [&edit] { return std::make_unique<PlanEditor>(edit); });
  const auto edited = [&](PlanEditor::Edit change) {
    edit = std::move(change);
    return refusal("training: {epochs: 4, batch_size: 16}\nmethods: [editor]\n");
  };
  const auto micro = [&](std::int64_t parts) {
    return edited([parts](TrainPlan& plan) { plan.micro_batches = parts; });
  };
  EXPECT_EQ(micro(4), "");
  EXPECT_THAT(micro(0), Names("editor", "micro_batches", 1, 0));
  EXPECT_THAT(micro(-2), Names("editor", "micro_batches", 1, "-2"));
  EXPECT_THAT(micro(3), Names("editor", "micro_batches", 16, 3));
  EXPECT_THAT(edited([](TrainPlan& plan) { plan.schedule = nullptr; }),
              Names("editor", "schedule"));
  EXPECT_THAT(edited([](TrainPlan& plan) { plan.image_size_px[2] = 0; }),
              Names("editor", "image_size_px", 1, 0));
  EXPECT_THAT(edited([](TrainPlan& plan) { plan.model.num_classes = 7; }),
              Names("editor", "model.num_classes", 7));
  EXPECT_THAT(edited([](TrainPlan& plan) { plan.model.in_channels = 1; }),
              Names("editor", "model.in_channels", 3, 1));
  EXPECT_THAT(edited([](TrainPlan& plan) { plan.repeats = 3; }), Names("editor", "repeats", 1, 3));
  EXPECT_THAT(edited([](TrainPlan& plan) { plan.model.targets = TargetKind::values; }),
              Names("editor", "model.targets"));
}

TEST_F(PlanLimitsTest, ThePlanHasTheRepeatsOfTheRecipe) {
  const Recipe recipe = load("data: {repeats: 3}\ntraining: {epochs: 4, batch_size: 16}\n");
  EXPECT_EQ(make_plan(requested_run(recipe), registries_, 100, 10).repeats, 3);
}

TEST_F(PlanLimitsTest, RatesThatAreNegativeOrNotFiniteNameTheScheduleAndTheEpoch) {
  double rate = 0;
  std::int64_t at = 0;
  bool in_step = false;
  registries_.schedules.add("one_rate", "", [&](const ScheduleInputs&) {
    return std::make_unique<OneRate>(rate, at, in_step);
  });
  const std::string recipe =
      "training: {epochs: 4, batch_size: 10}\nlr: {lr_schedule_type: one_rate}\n";
  const auto refused = [&](double wrong, std::int64_t epoch, bool step) {
    rate = wrong;
    at = epoch;
    in_step = step;
    return refusal(recipe);
  };
  EXPECT_EQ(refused(0, 3, false), "");
  EXPECT_THAT(refused(std::nan(""), 0, false), Names("one_rate", "lr(0)"));
  EXPECT_THAT(refused(-0.5, 3, false), Names("one_rate", "lr(3)", "-0.5"));
  EXPECT_THAT(refused(-0.5, 4, false), Names("one_rate", "lr(4)"));
  EXPECT_EQ(refused(-0.5, 5, false), "");
  EXPECT_THAT(refused(std::numeric_limits<double>::infinity(), 2, true),
              Names("one_rate", "step_lr(2, 9, 10)"));
  // Without training, rates do not matter.
  Recipe evaluated = load("training: {epochs: 4}\n");
  evaluated.schedule.name = "one_rate";
  EXPECT_THAT(refused(-1, 0, false), Names("one_rate"));
  EXPECT_NO_THROW(
      (void)make_plan(requested_run(evaluated), registries_, 0, 10, RecipeUse::evaluate));
}

TEST_F(PlanLimitsTest, TheHighestRateMayBeThatOfAStep) {
  registries_.schedules.add("one_rate", "", [](const ScheduleInputs&) {
    return std::make_unique<OneRate>(1.5, 2, /*in_step=*/true);
  });
  const Recipe recipe =
      load("training: {epochs: 4, batch_size: 10}\nlr: {lr: 1, lr_schedule_type: one_rate}\n");
  const auto highest = [&](std::int64_t samples) {
    const TrainPlan plan = make_plan(requested_run(recipe), registries_, samples, 10);
    Diagnostics diagnostics;
    warn_of_high_rates(recipe, plan, diagnostics);
    const bool above = !diagnostics.warnings().empty();
    const auto described = describe_plan(requested_run(recipe), plan, recipe.resolved, false);
    const auto rate = described.at("lr").at("highest").get<double>();
    EXPECT_EQ(above, rate > 1);
    return rate;
  };
  EXPECT_EQ(highest(100), 1.5);
  EXPECT_EQ(highest(0), 1);  // the number of steps is unknown
}

TEST_F(PlanLimitsTest, AnOptionWhoseKeyIsTakenIsRefusedOnlyIfItsPartIsChosen) {
  registries_.schedules.add<TakenOptions>(
      "own", "",
      [](const ScheduleInputs&, const TakenOptions& options) -> std::unique_ptr<Schedule> {
        return std::make_unique<OneRate>(options.lr, 0, false);
      });
  EXPECT_THAT(refusal("lr: {lr_schedule_type: own}\n"),
              Names("lr.lr_schedule_type", "own", "'lr'", "lr.lr"));
  EXPECT_EQ(refusal("lr: {lr: 0.25}\n"), "");
  EXPECT_EQ(load("lr: {lr: 0.25}\n").config.lr.lr, 0.25);
  EXPECT_THAT(refusal("lr: {lr: 0.25, lr_schedule_type: owm}\n"),
              Names("r.yaml:1:34", "lr.lr_schedule_type", "owm"));
}

}  // namespace
}  // namespace precast::tools
