#include <fmt/format.h>
#include <gtest/gtest.h>

#include "framework/api/train_plan.h"
#include "framework/core/error.h"
#include "recipes/register.h"
#include "tests/recipes/recipe_golden.h"
#include "tests/support/part_spec.h"

namespace precast::test {
namespace {

std::unique_ptr<Schedule> make_schedule(const std::string& name, const ScheduleInputs& inputs,
                                        const std::string& options = "") {
  ScheduleRegistry registry("schedule");
  recipes::register_schedules(registry);
  return registry.make(part_spec(name, options), inputs);
}

/// The rate of every step of a run.
std::vector<double> per_iteration(const std::string& name, const ScheduleInputs& inputs) {
  TrainPlan plan;
  plan.schedule = make_schedule(name, inputs);
  plan.steps_per_epoch = recipe_golden()["steps_per_epoch"].get<std::int64_t>();
  std::vector<double> rates;
  for (std::int64_t epoch = 0; epoch < inputs.epochs; ++epoch) {
    for (std::int64_t step = 0; step < plan.steps_per_epoch; ++step)
      rates.push_back(plan.lr(epoch, step));
  }
  return rates;
}

void expect_equal(const std::vector<double>& rates, const nlohmann::json& golden) {
  const auto expected = golden.get<std::vector<double>>();
  ASSERT_EQ(rates.size(), expected.size());
  for (std::size_t i = 0; i < rates.size(); ++i) EXPECT_DOUBLE_EQ(rates[i], expected[i]) << i;
}

class PublishedEpochsTest : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(PublishedEpochsTest, CyclicRatesOfEveryIterationAreThePublishedScripts) {
  expect_equal(per_iteration("cyclic", {.lr = 1.7, .epochs = GetParam()}),
               recipe_golden()["cyclic"][std::to_string(GetParam())]);
}

TEST_P(PublishedEpochsTest, StepRatesOfEveryIterationAreThePublishedScripts) {
  expect_equal(per_iteration("step", {.lr = 0.5, .epochs = GetParam()}),
               recipe_golden()["step"][std::to_string(GetParam())]);
}

INSTANTIATE_TEST_SUITE_P(Schedules, PublishedEpochsTest, ::testing::Values(16, 24, 32, 40, 56, 88));

TEST(CyclicTest, BehavesAsNumpyWhereThePeakIsNotInsideTheRun) {
  for (const nlohmann::json& edge : recipe_golden()["cyclic_edges"]) {
    const ScheduleInputs inputs{.epochs = edge["epochs"].get<std::int64_t>()};
    const auto schedule =
        make_schedule("cyclic", inputs, fmt::format("{{lr_peak_epoch: {}}}", edge["peak"].dump()));
    std::vector<double> rates;
    for (std::int64_t epoch = 0; epoch <= inputs.epochs; ++epoch)
      rates.push_back(schedule->lr(epoch));
    SCOPED_TRACE(edge.dump());
    expect_equal(rates, edge["lr"]);
  }
}

/// The schedule with which a golden of torch's schedulers was made.
std::unique_ptr<Schedule> golden_schedule(const std::string& name, nlohmann::json given) {
  const ScheduleInputs inputs{.lr = given["lr"], .epochs = given["epochs"]};
  given.erase("lr");
  given.erase("epochs");
  if (name == "one_cycle") given.erase("warmup_epochs");
  return make_schedule(name, inputs, given.dump());
}

class TorchScheduleTest : public ::testing::TestWithParam<std::string> {};

TEST_P(TorchScheduleTest, RatesOfEveryStepAreTorchs) {
  for (const nlohmann::json& golden : schedule_golden()[GetParam()]) {
    SCOPED_TRACE(golden["options"].dump());
    TrainPlan plan;
    plan.schedule = golden_schedule(GetParam(), golden["options"]);
    plan.steps_per_epoch = golden["steps_per_epoch"];
    const auto expected = golden["lr"].get<std::vector<double>>();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto step_index = static_cast<std::int64_t>(i);
      // torch computes each rate from the previous one, so its rounding errors accumulate.
      EXPECT_NEAR(plan.lr(step_index / plan.steps_per_epoch, step_index % plan.steps_per_epoch),
                  expected[i], 1e-12)
          << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, TorchScheduleTest,
                         ::testing::Values("cosine", "poly", "constant", "one_cycle"),
                         [](const auto& test) { return test.param; });

TEST(WarmupTest, BordersOfEpochsAreTheirFirstSteps) {
  for (const std::string name : {"cosine", "poly", "constant"}) {
    const auto schedule = make_schedule(name, {.epochs = 6}, "{warmup_epochs: 2}");
    for (std::int64_t epoch = 0; epoch < 6; ++epoch)
      EXPECT_DOUBLE_EQ(schedule->lr(epoch), schedule->step_lr(epoch, 0, 17)) << name << epoch;
  }
}

TEST(WarmupTest, ARunShorterThanTheWarmupOnlyRises) {
  for (const std::string name : {"cosine", "poly", "constant"}) {
    const auto schedule = make_schedule(name, {.lr = 0.5, .epochs = 1}, "{warmup_epochs: 5}");
    EXPECT_DOUBLE_EQ(schedule->step_lr(0, 9, 10), 0.5 * 9 / 50) << name;
    const auto as_long = make_schedule(name, {.lr = 0.5, .epochs = 1}, "{warmup_epochs: 1}");
    EXPECT_DOUBLE_EQ(as_long->lr(1), 0.5) << name;
  }
}

TEST(OneCycleTest, BordersOfEpochsAreTheLimitOfSmallSteps) {
  const auto schedule = make_schedule("one_cycle", {.lr = 0.5, .epochs = 10});
  for (std::int64_t epoch = 0; epoch < 10; ++epoch)
    EXPECT_NEAR(schedule->lr(epoch), schedule->step_lr(epoch, 0, 1'000'000), 1e-6) << epoch;
  EXPECT_DOUBLE_EQ(schedule->lr(10), 0.5 / 25 / 1e4);
}

TEST(SchedulesTest, RefuseImpossibleOptions) {
  EXPECT_THROW((void)make_schedule("constant", {}, "{warmup_epochs: -1}"), ConfigError);
  EXPECT_THROW((void)make_schedule("cosine", {}, "{final_lr: -1}"), ConfigError);
  EXPECT_THROW((void)make_schedule("poly", {}, "{power: 0}"), ConfigError);
  EXPECT_THROW((void)make_schedule("one_cycle", {}, "{pct_start: 1}"), ConfigError);
  EXPECT_THROW((void)make_schedule("one_cycle", {}, "{div_factor: 0}"), ConfigError);
  EXPECT_THROW((void)make_schedule("cyclic", {}, "{final_lr: 0}"), ConfigError);
  EXPECT_THROW((void)make_schedule("cyclic", {}, "{lr_peak_epoch: -1}"), ConfigError);
  EXPECT_THROW((void)make_schedule("step", {}, "{step_length: 0}"), ConfigError);
  EXPECT_THROW((void)make_schedule("step", {}, "{step_ratio: 0}"), ConfigError);
}

}  // namespace
}  // namespace precast::test
