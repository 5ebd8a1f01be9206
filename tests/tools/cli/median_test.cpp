#include "tools/cli/median.h"

#include <gtest/gtest.h>

namespace precast::tools {
namespace {

TEST(MedianTest, IsTheMiddleValueOrTheMeanOfTheTwoInTheMiddle) {
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({3, 1}), 2);
  EXPECT_EQ(median({5, 9, 1}), 5);
  EXPECT_EQ(median({4, 8, 1, 3}), 3.5);
  EXPECT_EQ(median({2, 2, 2, 9}), 2);
}

}  // namespace
}  // namespace precast::tools
