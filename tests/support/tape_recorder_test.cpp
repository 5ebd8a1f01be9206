// The recorder for CPUs stores what a CUDA graph stores, so that tests with it detect values that a
// graph would freeze.
#include "tests/support/tape_recorder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace precast::test {
namespace {

using testing::ElementsAre;

std::vector<double> values(const at::Tensor& tensor) {
  std::vector<double> all;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) all.push_back(tensor[i].item<double>());
  return all;
}

class TapeRecorderTest : public ::testing::Test {
 protected:
  TapeLog log_;
  TapeRecorder recorder_{log_};
  at::Tensor x_ = at::ones({2});
};

TEST_F(TapeRecorderTest, WhatIsRecordedIsExecutedByReplaysOnly) {
  const auto recording = recorder_.record([&] { x_.mul_(3); });
  EXPECT_THAT(values(x_), ElementsAre(1, 1));
  recording->replay();
  recording->replay();
  EXPECT_THAT(values(x_), ElementsAre(9, 9));
}

TEST_F(TapeRecorderTest, ReplaysReadTheNewContentOfTheSameMemory) {
  at::Tensor y;
  const auto recording = recorder_.record([&] { y = x_ * 2 + 1; });
  for (const double value : {4.0, 5.0}) {
    x_.fill_(value);
    recording->replay();
    EXPECT_THAT(values(y), ElementsAre(2 * value + 1, 2 * value + 1));
  }
}

TEST_F(TapeRecorderTest, ABackwardPassIsRecorded) {
  at::Tensor weight = at::full({2}, 3.0).requires_grad_();
  const auto recording = recorder_.record([&] { (weight * x_).sum().backward(); });
  x_.fill_(7);
  recording->replay();
  EXPECT_THAT(values(weight.grad()), ElementsAre(7, 7));
}

TEST_F(TapeRecorderTest, NumbersAndDecisionsOfTheHostAreFrozen) {
  double rate = 2;
  bool adds = true;
  const auto recording = recorder_.record([&] {
    x_.mul_(rate);
    if (adds) x_.add_(1);
  });
  rate = 5;
  adds = false;
  recording->replay();
  EXPECT_THAT(values(x_), ElementsAre(3, 3));
}

TEST_F(TapeRecorderTest, ATensorThatIsReplacedIsStillReadWhereItWas) {
  at::Tensor source = at::full({2}, 4.0);
  const at::Tensor keeps_the_memory = source.alias();
  const auto recording = recorder_.record([&] { x_.copy_(source); });
  source.set_data(at::full({2}, 9.0));
  recording->replay();
  EXPECT_THAT(values(x_), ElementsAre(4, 4));
}

TEST_F(TapeRecorderTest, MemoryThatIsGoneIsAnError) {
  at::Tensor source = at::full({2}, 4.0);
  const auto recording = recorder_.record([&] { x_.copy_(source); });
  source = at::full({2}, 9.0);
  EXPECT_THROW(recording->replay(), c10::Error);
}

TEST_F(TapeRecorderTest, ATensorCreatedInTheRecordingStartsAnewEachTime) {
  at::Tensor sum;
  const auto recording = recorder_.record([&] {
    if (!sum.defined()) sum = at::zeros_like(x_);
    sum.add_(x_);
  });
  recording->replay();
  recording->replay();
  EXPECT_THAT(values(sum), ElementsAre(1, 1));
}

TEST_F(TapeRecorderTest, ReadingAValueOnTheHostFailsAndLeavesEverythingAsItWas) {
  EXPECT_THROW(static_cast<void>(recorder_.record([&] {
                 x_.mul_(2);
                 static_cast<void>(x_[0].item<double>());
               })),
               c10::Error);
  EXPECT_THAT(values(x_), ElementsAre(1, 1));
  EXPECT_EQ(log_.alive, 0);
  const auto recording = recorder_.record([&] { x_.mul_(2); });
  recording->replay();
  EXPECT_THAT(values(x_), ElementsAre(2, 2));
}

TEST_F(TapeRecorderTest, ARecordingDrawsNothingAndEachReplayDrawsAnew) {
  at::manual_seed(1);
  const at::Tensor first = at::rand({2}), second = at::rand({2});
  at::manual_seed(1);
  at::Tensor drawn;
  const auto recording = recorder_.record([&] { drawn = at::rand({2}); });
  recording->replay();
  EXPECT_TRUE(at::equal(drawn, first));
  recording->replay();
  EXPECT_TRUE(at::equal(drawn, second));
}

TEST_F(TapeRecorderTest, RecordingsShareMemoryExceptForTensorsThatTheHostKeeps) {
  at::Tensor kept, other;
  const char* lost = nullptr;
  const auto first = recorder_.record([&] {
    kept = x_ + 1;
    const at::Tensor gone = x_ + 2;
    lost = static_cast<const char*>(gone.const_data_ptr());
  });
  const auto second = recorder_.record([&] { other = x_ + 3; });
  first->replay();
  const auto value_of_lost = [&] { return *reinterpret_cast<const float*>(lost); };
  EXPECT_EQ(value_of_lost(), 3);
  second->replay();
  EXPECT_TRUE(std::isnan(value_of_lost()));
  EXPECT_THAT(values(kept), ElementsAre(2, 2));
  EXPECT_THAT(values(other), ElementsAre(4, 4));
  EXPECT_EQ(log_.alive, 2);
}

TEST_F(TapeRecorderTest, ALaunchRunsInItsPlaceInReplaysOnly) {
  at::Tensor y, z;
  const auto launch = [&](const at::Tensor& on) {
    const auto run = [to = on.mutable_data_ptr<float>()] { *to += 10; };
    if (!TapeRecorder::record_launch(run)) run();
  };
  const auto recording = recorder_.record([&] {
    y = x_ * 2;
    launch(y);
    z = y + 1;
  });
  x_.fill_(3);
  recording->replay();
  EXPECT_THAT(values(y), ElementsAre(16, 6));
  EXPECT_THAT(values(z), ElementsAre(17, 7));
  launch(y);
  EXPECT_THAT(values(y), ElementsAre(26, 6));
}

}  // namespace
}  // namespace precast::test
