#include "framework/engine/graph_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recipes/register.h"
#include "tests/recipes/make_method.h"
#include "tests/support/fake_parts.h"

namespace precast::engine {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class GraphChoiceTest : public ::testing::Test {
 protected:
  GraphChoice choose(GraphMode mode) {
    return choose_graph({.mode = mode,
                         .precision = precision_,
                         .device = device_,
                         .world = world_,
                         .takes_lr_tensor = takes_lr_tensor_,
                         .methods = methods_,
                         .sync_obstacle = sync_obstacle_});
  }
  void expect_obstacle(GraphScope scope, const std::string& part) {
    const GraphChoice choice = choose(GraphMode::step);
    EXPECT_EQ(choice.scope, scope) << part;
    ASSERT_THAT(choice.obstacles, SizeIs(1)) << part;
    EXPECT_THAT(choice.obstacles[0], HasSubstr(part));
    const std::string what = scope == GraphScope::none
                                 ? "nothing: "
                                 : "the forward and backward passes, not the whole step: ";
    EXPECT_EQ(graph_text(choice), what + choice.obstacles[0]);
  }

  at::Device device_{at::kCUDA, 0};
  Precision precision_ = Precision::bf16;
  int world_ = 1;
  bool takes_lr_tensor_ = true;
  std::string sync_obstacle_;
  std::vector<NamedMethod> methods_;
};

TEST_F(GraphChoiceTest, PassesAreForOneGpuAndByDefaultForHalfPrecision) {
  EXPECT_EQ(choose(GraphMode::automatic).scope, GraphScope::passes);
  EXPECT_EQ(choose(GraphMode::on).scope, GraphScope::passes);
  EXPECT_EQ(choose(GraphMode::off).scope, GraphScope::none);
  precision_ = Precision::fp32;
  EXPECT_EQ(choose(GraphMode::automatic).scope, GraphScope::none);
  EXPECT_EQ(choose(GraphMode::on).scope, GraphScope::passes);
  world_ = 2;
  EXPECT_EQ(choose(GraphMode::on).scope, GraphScope::none);
  world_ = 1;
  device_ = at::kCPU;
  EXPECT_EQ(choose(GraphMode::on).scope, GraphScope::none);
}

TEST_F(GraphChoiceTest, TheWholeStepIsRecordedOnlyOnRequest) {
  EXPECT_EQ(choose(GraphMode::step).scope, GraphScope::step);
  precision_ = Precision::fp32;
  world_ = 8;
  EXPECT_EQ(choose(GraphMode::step).scope, GraphScope::step);
  EXPECT_THAT(choose(GraphMode::step).obstacles, IsEmpty());
}

TEST_F(GraphChoiceTest, WhatCannotBeRecordedIsNamedAndPassesAreRecordedInstead) {
  takes_lr_tensor_ = false;
  expect_obstacle(GraphScope::passes, "learning rate");
  takes_lr_tensor_ = true;
  methods_.push_back({"sam", test::make_method("sam")});
  expect_obstacle(GraphScope::passes, "sam");
  std::vector<std::string> calls;
  methods_[0] = {"recording", std::make_unique<test::RecordingMethod>(calls)};
  expect_obstacle(GraphScope::passes, "recording");
  methods_.clear();
  device_ = at::kCPU;
  expect_obstacle(GraphScope::none, "CPU");
}

TEST_F(GraphChoiceTest, SeveralRanksThatCannotBeRecordedHaveNoGraph) {
  world_ = 2;
  sync_obstacle_ = "Gloo";
  expect_obstacle(GraphScope::none, "Gloo");
  sync_obstacle_.clear();
  methods_.push_back({"layer_freezing", test::make_method("layer_freezing")});
  expect_obstacle(GraphScope::none, "layer_freezing");
  world_ = 1;
  EXPECT_EQ(choose(GraphMode::step).scope, GraphScope::step);
}

TEST_F(GraphChoiceTest, OnlyMethodsThatReplaceTheStepKeepItFromBeingRecorded) {
  MethodRegistry registry("method");
  recipes::register_methods(registry);
  std::vector<std::string> obstacles;
  for (const std::string& name : registry.names()) {
    methods_.clear();
    methods_.push_back({name, test::make_method(name)});
    if (choose(GraphMode::step).scope != GraphScope::step) obstacles.push_back(name);
  }
  EXPECT_THAT(obstacles, testing::UnorderedElementsAre("sam", "selective_backprop"));
}

}  // namespace
}  // namespace precast::engine
