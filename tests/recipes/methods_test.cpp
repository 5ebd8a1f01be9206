#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "framework/api/method.h"
#include "framework/api/train_plan.h"
#include "framework/core/error.h"
#include "tests/recipes/make_method.h"
#include "tests/recipes/recipe_golden.h"
#include "tests/support/message_matchers.h"

namespace precast::test {
namespace {

using ::testing::ThrowsMessage;

TrainPlan configured(const std::string& name, const std::string& options = "{}",
                     std::int64_t epochs = 12) {
  TrainPlan plan;
  plan.epochs = epochs;
  plan.image_size_px.assign(static_cast<std::size_t>(epochs), 224);
  make_method(name, options)->configure(plan);
  return plan;
}

TEST(MethodsTest, EditThePlan) {
  EXPECT_FALSE(TrainPlan().model.blurpool);
  EXPECT_TRUE(configured("blurpool").model.blurpool);
  EXPECT_EQ(TrainPlan().model.ghost_batch_size, 0);
  EXPECT_EQ(configured("ghost_batch_norm").model.ghost_batch_size, 32);
  EXPECT_EQ(configured("ghost_batch_norm", "{size: 8}").model.ghost_batch_size, 8);
  EXPECT_FALSE(TrainPlan().channels_last);
  EXPECT_TRUE(configured("channels_last").channels_last);
  EXPECT_EQ(configured("label_smoothing").loss.options.flow(), "{label_smoothing: 0.1}");
  EXPECT_EQ(configured("label_smoothing", "{smoothing: 0.2}").loss.options.flow(),
            "{label_smoothing: 0.2}");
}

TEST(MethodsTest, AnOptionOfTheLossThatTheRecipeSetsMustHaveTheMethodsValue) {
  struct Case {
    const char *method, *options, *option, *same, *other;
  };
  for (const Case& given :
       {Case{"label_smoothing", "{}", "label_smoothing", "0.10", "0.2"},
        Case{"bce_loss", "{}", "sum_classes", "off", "true"},
        Case{"bce_loss", "{target_threshold: 0.2}", "target_threshold", "2e-1", "-1"}}) {
    TrainPlan plan;
    plan.loss = {"bce"};
    plan.loss.set(given.option, given.same);
    EXPECT_NO_THROW(make_method(given.method, given.options)->configure(plan)) << given.option;
    plan.loss = {"bce"};
    plan.loss.set(given.option, given.other);
    EXPECT_THAT([&] { make_method(given.method, given.options)->configure(plan); },
                ThrowsMessage<ConfigError>(::testing::AllOf(
                    Names(given.method, fmt::format("loss.{}", given.option), given.other),
                    ::testing::Not(::testing::HasSubstr("()")))));
  }
}

TEST(MethodsTest, RefuseUnknownOptionsAndWrongValues) {
  EXPECT_THROW((void)make_method("blurpool", "{size: 3}"), ConfigError);
  EXPECT_THROW((void)make_method("label_smoothing", "{smoothing: 1}"), ConfigError);
  EXPECT_THROW((void)make_method("gradient_clipping", "{max_norm: 0}"), ConfigError);
  EXPECT_THROW((void)make_method("ghost_batch_norm", "{size: 0}"), ConfigError);
  EXPECT_THROW((void)make_method("ema", "{decay: 1}"), ConfigError);
  EXPECT_THROW((void)make_method("progressive_resize", "{min_res: 0}"), ConfigError);
}

TEST(ProgressiveResizeTest, SizesOfThePublishedRunsAreTheScripts) {
  const std::map<std::int64_t, std::pair<int, int>> ramps = {{16, {11, 13}}, {24, {17, 20}},
                                                             {32, {23, 27}}, {40, {29, 34}},
                                                             {56, {41, 48}}, {88, {65, 76}}};
  for (const auto& [epochs, ramp] : ramps) {
    const std::string options = fmt::format(
        "{{min_res: 160, max_res: 192, start_ramp: {}, end_ramp: {}}}", ramp.first, ramp.second);
    EXPECT_EQ(
        configured("progressive_resize", options, epochs).image_size_px,
        recipe_golden()["resolution"][std::to_string(epochs)].get<std::vector<std::int64_t>>());
  }
}

TEST(ProgressiveResizeTest, RoundsHalfToEvenAndKeepsTheEndsAsWritten) {
  for (nlohmann::json ramp : recipe_golden()["ramps"]) {
    const auto expected = ramp["size_px"].get<std::vector<std::int64_t>>();
    ramp.erase("size_px");
    EXPECT_EQ(configured("progressive_resize", ramp.dump()).image_size_px, expected) << ramp;
  }
}

TEST(ProgressiveResizeTest, ARoundedSizeMayBeOutsideTheEndsAsInTheScript) {
  EXPECT_EQ(
      configured("progressive_resize", "{min_res: 128, max_res: 184, end_ramp: 10}").image_size_px,
      (std::vector<std::int64_t>{128, 128, 128, 160, 160, 160, 160, 160, 160, 192, 184, 184}));
  EXPECT_EQ(configured("progressive_resize", "{min_res: 140, max_res: 150, end_ramp: 3}", 4)
                .image_size_px,
            (std::vector<std::int64_t>{140, 128, 160, 150}));
  EXPECT_EQ(
      configured("progressive_resize", "{min_res: 8, max_res: 28, end_ramp: 5}", 6).image_size_px,
      (std::vector<std::int64_t>{8, 8, 8, 32, 32, 28}));
}

TEST(ProgressiveResizeTest, RefusesARampDownwards) {
  EXPECT_THAT(
      [] { (void)configured("progressive_resize", "{min_res: 192, max_res: 160}"); },
      ThrowsMessage<ConfigError>(Names("progressive_resize", "min_res <= max_res", 192, 160)));
}

}  // namespace
}  // namespace precast::test
