#include <gtest/gtest.h>

#include "framework/api/train_plan.h"
#include "framework/core/error.h"
#include "recipes/register.h"
#include "tests/recipes/recipe_golden.h"

namespace precast::test {
namespace {

std::unique_ptr<Schedule> make_schedule(const std::string& name, const ScheduleOptions& options) {
  ScheduleRegistry registry("schedule");
  recipes::register_schedules(registry);
  return registry.create(name, options);
}

/// The rate of every step of a run.
std::vector<double> per_iteration(const std::string& name, const ScheduleOptions& options) {
  TrainPlan plan;
  plan.schedule = make_schedule(name, options);
  plan.steps_per_epoch = recipe_golden()["steps_per_epoch"].get<std::int64_t>();
  std::vector<double> rates;
  for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) {
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
    const ScheduleOptions options{.epochs = edge["epochs"].get<std::int64_t>(),
                                  .lr_peak_epoch = edge["peak"].get<std::int64_t>()};
    const auto schedule = make_schedule("cyclic", options);
    std::vector<double> rates;
    for (std::int64_t epoch = 0; epoch <= options.epochs; ++epoch)
      rates.push_back(schedule->lr(epoch));
    SCOPED_TRACE(edge.dump());
    expect_equal(rates, edge["lr"]);
  }
}

TEST(SchedulesTest, RefuseImpossibleOptions) {
  EXPECT_THROW((void)make_schedule("cyclic", {.lr = -1}), ConfigError);
  EXPECT_THROW((void)make_schedule("cyclic", {.epochs = 0}), ConfigError);
  EXPECT_THROW((void)make_schedule("cyclic", {.lr_peak_epoch = -1}), ConfigError);
  EXPECT_THROW((void)make_schedule("step", {.step_length = 0}), ConfigError);
  EXPECT_THROW((void)make_schedule("step", {.step_ratio = 0}), ConfigError);
}

}  // namespace
}  // namespace precast::test
