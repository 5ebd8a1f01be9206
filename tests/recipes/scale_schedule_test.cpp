#include <fmt/format.h>
#include <gtest/gtest.h>

#include "framework/api/method.h"
#include "framework/api/train_plan.h"
#include "framework/core/error.h"
#include "recipes/register.h"
#include "tests/recipes/make_method.h"
#include "tests/recipes/recipe_golden.h"
#include "tests/support/part_spec.h"

namespace precast::test {
namespace {

TrainPlan scaled(const PartSpec& schedule, const ScheduleInputs& inputs, double ratio,
                 std::int64_t steps_per_epoch) {
  ScheduleRegistry registry("schedule");
  recipes::register_schedules(registry);
  TrainPlan plan;
  plan.epochs = inputs.epochs;
  plan.steps_per_epoch = steps_per_epoch;
  plan.schedule = registry.make(schedule, inputs);
  for (std::int64_t epoch = 0; epoch < plan.epochs; ++epoch)
    plan.image_size_px.push_back(100 + epoch);
  make_method("scale_schedule", fmt::format("{{ratio: {}}}", ratio))->configure(plan);
  return plan;
}

TEST(ScaleScheduleTest, RatesAreComposersInEveryStep) {
  for (const auto& golden : method_golden()["scale_schedule"]) {
    const auto steps = golden["steps"].get<std::int64_t>();
    const std::string option = golden["schedule"] == "cyclic" ? "lr_peak_epoch" : "warmup_epochs";
    const TrainPlan plan = scaled(
        part_spec(golden["schedule"],
                  fmt::format("{{{}: {}}}", option, golden["warmup_epochs"].get<std::int64_t>())),
        {.lr = 1, .epochs = golden["epochs"].get<std::int64_t>()}, golden["ratio"].get<double>(),
        steps);
    ASSERT_EQ(plan.epochs, golden["scaled_epochs"].get<std::int64_t>());
    std::vector<double> rates;
    for (std::int64_t epoch = 0; epoch < plan.epochs; ++epoch) {
      for (std::int64_t step = 0; step < steps; ++step) rates.push_back(plan.lr(epoch, step));
    }
    expect_near(rates, golden["lr"], golden["schedule"] == "cyclic" ? 1.01e-4 : 1e-12);
  }
}

TEST(ScaleScheduleTest, EpochMilestonesAreScaled) {
  const TrainPlan plan =
      scaled(part_spec("step", "{step_length: 4}"), {.lr = 2, .epochs = 16}, 0.5, 10);
  EXPECT_EQ(plan.epochs, 8);
  EXPECT_EQ(plan.image_size_px,
            (std::vector<std::int64_t>{100, 102, 104, 106, 108, 110, 112, 114}));
  EXPECT_DOUBLE_EQ(plan.schedule->lr(1), 2);
  EXPECT_DOUBLE_EQ(plan.schedule->lr(2), 0.2) << "the rate falls in epoch 4 of the unscaled plan";
  EXPECT_DOUBLE_EQ(plan.schedule->lr(8), 0) << "the end";
}

TEST(ScaleScheduleTest, AWarmUpStaysAsLongAsItIs) {
  const TrainPlan cyclic =
      scaled(part_spec("cyclic", "{lr_peak_epoch: 4}"), {.lr = 2, .epochs = 16}, 0.5, 10);
  EXPECT_DOUBLE_EQ(cyclic.schedule->lr(4), 2) << "the peak";
  EXPECT_DOUBLE_EQ(cyclic.lr(6, 0), 1);
  const TrainPlan all =
      scaled(part_spec("cosine", "{warmup_epochs: 8}"), {.lr = 2, .epochs = 16}, 0.25, 10);
  EXPECT_DOUBLE_EQ(all.lr(3, 9), 2 * 39.0 / 80) << "only warm-up is left";
}

TEST(ScaleScheduleTest, OneCycleIsThatOfTheNewLengthInEveryStep) {
  const PartSpec schedule = part_spec("one_cycle");
  const TrainPlan halved = scaled(schedule, {.lr = 2, .epochs = 4}, 0.5, 5);
  const TrainPlan short_run = scaled(schedule, {.lr = 2, .epochs = 2}, 1, 5);
  ASSERT_EQ(halved.epochs, 2);
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    for (std::int64_t step = 0; step < 5; ++step)
      EXPECT_EQ(halved.lr(epoch, step), short_run.lr(epoch, step)) << epoch << " " << step;
  }
  EXPECT_DOUBLE_EQ(halved.lr(1, 4), 2.0 / 25 / 1e4) << "the last rate";
}

TEST(ScaleScheduleTest, ALongerRunStretchesTheImageSizes) {
  const TrainPlan plan =
      scaled(part_spec("step", "{step_length: 1}"), {.lr = 2, .epochs = 2}, 2, 10);
  EXPECT_EQ(plan.image_size_px, (std::vector<std::int64_t>{100, 100, 101, 101}));
  EXPECT_DOUBLE_EQ(plan.schedule->lr(1), (2 + 0.2) / 2);
}

TEST(ScaleScheduleTest, RefusesARunOfNoEpochs) {
  EXPECT_THROW((void)scaled(part_spec("constant"), {.lr = 1, .epochs = 4}, 0.2, 10), ConfigError);
}

}  // namespace
}  // namespace precast::test
