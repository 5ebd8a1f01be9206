#include "data/torch/look_ahead.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace precast::data {
namespace {

class LookAheadTest : public ::testing::Test {
 protected:
  /// Makes 0, 1, 2 ...; nothing from `end_` on; throws at `bad_`.
  std::optional<int> next() {
    return ahead_.next(
        [this]() -> std::optional<int> {
          if (produced_ == bad_) throw std::runtime_error("damaged");
          if (produced_ == end_) return std::nullopt;
          return produced_++;
        },
        [this] { return ready_; });
  }

  LookAhead<int> ahead_{2};
  int produced_ = 0;
  int end_ = 5;
  int bad_ = -1;
  bool ready_ = true;
};

TEST_F(LookAheadTest, KeepsItsDepthOfItemsAheadAndDeliversAllInOrder) {
  EXPECT_EQ(next(), 0);
  EXPECT_EQ(produced_, 3);
  for (int expected = 1; expected < 5; ++expected) EXPECT_EQ(next(), expected);
  EXPECT_EQ(next(), std::nullopt);
  EXPECT_EQ(next(), std::nullopt);
}

TEST_F(LookAheadTest, GoodItemsComeBeforeTheFailureBehindThem) {
  bad_ = 2;
  EXPECT_EQ(next(), 0);
  EXPECT_EQ(next(), 1);
  EXPECT_THROW(next(), std::runtime_error);
  EXPECT_EQ(next(), std::nullopt);
}

TEST_F(LookAheadTest, AReadyItemDoesNotWaitForTheNextOne) {
  EXPECT_EQ(next(), 0);
  ready_ = false;
  EXPECT_EQ(next(), 1);
  EXPECT_EQ(next(), 2);
  EXPECT_EQ(produced_, 3);
  EXPECT_EQ(next(), 3) << "if no item is ready, next() waits for one";
  EXPECT_EQ(produced_, 4);
}

TEST_F(LookAheadTest, ARestartForgetsItemsAndFailures) {
  bad_ = 2;
  EXPECT_EQ(next(), 0);
  ahead_.restart();
  produced_ = 3;
  EXPECT_EQ(next(), 3);
  EXPECT_EQ(next(), 4);
  EXPECT_EQ(next(), std::nullopt);
}

}  // namespace
}  // namespace precast::data
