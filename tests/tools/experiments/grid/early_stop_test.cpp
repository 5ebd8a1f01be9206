#include "tools/experiments/grid/early_stop.h"

#include <gtest/gtest.h>

#include <cmath>

namespace precast::tools {
namespace {

using Rule = EarlyStopOptions::Rule;

TEST(MedianStopTest, StopsWhatStaysBelowTheOthersMedian) {
  EarlyStop rule({.rule = Rule::median, .min_epochs = 2});
  for (int epoch = 0; epoch < 3; ++epoch) {
    rule.report("a", epoch, 0.6);
    rule.report("b", epoch, 0.5);
    rule.report("c", epoch, 0.4);
  }
  rule.report("bad", 0, 0.1);
  EXPECT_FALSE(rule.should_stop("bad")) << "before min_epochs";
  rule.report("bad", 1, 0.2);
  EXPECT_TRUE(rule.should_stop("bad"));
  rule.report("bad", 2, 0.55);
  EXPECT_FALSE(rule.should_stop("bad")) << "the best value of a trial counts";
  EXPECT_FALSE(rule.should_stop("unknown"));
}

TEST(MedianStopTest, NeedsThreeOtherTrialsThatReachedTheEpoch) {
  EarlyStop rule({.rule = Rule::median});
  rule.report("a", 0, 0.9);
  rule.report("b", 0, 0.9);
  rule.report("bad", 0, 0.1);
  EXPECT_FALSE(rule.should_stop("bad"));
  rule.report("c", 0, 0.9);
  EXPECT_TRUE(rule.should_stop("bad"));
  rule.report("bad", 1, 0.1);
  EXPECT_FALSE(rule.should_stop("bad")) << "no other trial has reached epoch 1";
}

TEST(MedianStopTest, SmallerIsBetterForLosses) {
  EarlyStop rule({.rule = Rule::median, .maximise = false});
  for (const char* other : {"a", "b", "c"}) rule.report(other, 0, 1.0);
  rule.report("good", 0, 0.5);
  rule.report("nan", 0, std::nan(""));
  EXPECT_FALSE(rule.should_stop("good"));
  EXPECT_TRUE(rule.should_stop("nan"));
}

TEST(MedianStopTest, OthersWithoutFiguresUpToTheEpochDoNotCount) {
  EarlyStop rule({.rule = Rule::median});
  for (const char* other : {"a", "b"}) rule.report(other, 0, 0.9);
  for (const char* late : {"c", "d", "e"}) rule.report(late, 5, 0.9);
  rule.report("bad", 0, 0.1);
  EXPECT_FALSE(rule.should_stop("bad")) << "only two others have a figure up to epoch 0";
  rule.report("f", 0, 0.9);
  EXPECT_TRUE(rule.should_stop("bad"));
}

TEST(MedianStopTest, AFigureThatIsNotFiniteIsTheWorst) {
  EarlyStop rule({.rule = Rule::median});
  for (const char* other : {"a", "b", "c"}) rule.report(other, 0, 0.5);
  rule.report("infinite", 0, HUGE_VAL);
  EXPECT_TRUE(rule.should_stop("infinite"));
  EXPECT_FALSE(rule.should_stop("a"));
}

TEST(AshaTest, OneInReductionPassesEachRung) {
  EarlyStop rule({.rule = Rule::asha, .min_epochs = 1, .reduction = 2});
  rule.report("a", 0, 0.5);
  EXPECT_FALSE(rule.should_stop("a")) << "the first trial at this rung";
  rule.report("b", 0, 0.4);
  EXPECT_TRUE(rule.should_stop("b"));
  rule.report("c", 0, 0.7);
  EXPECT_FALSE(rule.should_stop("c"));
  EXPECT_FALSE(rule.should_stop("a")) << "a passed rung stays passed";
  rule.report("a", 1, 0.6);
  EXPECT_FALSE(rule.should_stop("a"));
  rule.report("c", 1, 0.55);
  EXPECT_TRUE(rule.should_stop("c"));
}

TEST(AshaTest, AStoppedTrialResumesAfterWorseTrialsReachItsRung) {
  EarlyStop rule({.rule = Rule::asha, .min_epochs = 1, .reduction = 2});
  rule.report("a", 0, 0.9);
  rule.report("b", 0, 0.5);
  EXPECT_FALSE(rule.should_stop("a"));
  EXPECT_TRUE(rule.should_stop("b"));
  EXPECT_FALSE(rule.trial_to_resume({"b"}).has_value());
  rule.report("c", 0, 0.3);
  EXPECT_TRUE(rule.should_stop("c"));
  rule.report("d", 0, 0.2);
  EXPECT_EQ(rule.trial_to_resume({"b", "c"}), "b");
  EXPECT_FALSE(rule.should_stop("b"));
  EXPECT_FALSE(rule.trial_to_resume({"c"}).has_value());
}

TEST(AshaTest, APassedRungIsNotComparedAgain) {
  EarlyStop rule({.rule = Rule::asha, .min_epochs = 1, .reduction = 2});
  rule.report("a", 0, 0.9);
  rule.report("b", 0, 0.5);
  EXPECT_EQ(rule.passed("b"), -1);
  rule.set_passed("b", 0);
  EXPECT_FALSE(rule.should_stop("b"));
  rule.report("a", 1, 0.9);
  rule.report("b", 1, 0.5);
  EXPECT_FALSE(rule.should_stop("a"));
  EXPECT_EQ(rule.passed("a"), 1);
  EXPECT_TRUE(rule.should_stop("b")) << "at the next rung";
}

TEST(AshaTest, OffByDefault) {
  EarlyStop rule({});
  rule.report("a", 0, 0.9);
  rule.report("b", 0, 0.1);
  EXPECT_FALSE(rule.should_stop("b"));
  EXPECT_FALSE(rule.trial_to_resume({"b"}).has_value());
}

}  // namespace
}  // namespace precast::tools
