#include "framework/engine/step_graph.h"

#include <gtest/gtest.h>

namespace precast::engine {
namespace {

const at::Device kGpu(at::kCUDA, 0);

TEST(StepGraph, IsForOneGpuAndByDefaultForHalfPrecision) {
  TrainPlan plan;
  plan.precision = Precision::bf16;
  EXPECT_TRUE(can_capture(GraphMode::automatic, plan, kGpu, /*world=*/1));
  EXPECT_FALSE(can_capture(GraphMode::automatic, plan, kGpu, /*world=*/2));
  EXPECT_FALSE(can_capture(GraphMode::automatic, plan, at::kCPU, /*world=*/1));
  EXPECT_FALSE(can_capture(GraphMode::off, plan, kGpu, /*world=*/1));
  plan.precision = Precision::fp32;
  EXPECT_FALSE(can_capture(GraphMode::automatic, plan, kGpu, /*world=*/1));
  EXPECT_TRUE(can_capture(GraphMode::on, plan, kGpu, /*world=*/1));
}

TEST(StepGraph, IsWorthItForFewPixels) {
  EXPECT_TRUE(worth_capturing(GraphMode::automatic, 95, 160));
  EXPECT_FALSE(worth_capturing(GraphMode::automatic, 96, 160));
  EXPECT_TRUE(worth_capturing(GraphMode::automatic, 512, 32));
  EXPECT_FALSE(worth_capturing(GraphMode::automatic, 256, 224));
  EXPECT_TRUE(worth_capturing(GraphMode::on, 256, 224));
}

}  // namespace
}  // namespace precast::engine
