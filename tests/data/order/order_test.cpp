#include "data/order/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace precast::data {
namespace {

TEST(OrderTest, SequentialIsTheFilesOrder) {
  EXPECT_EQ(make_order(OrderKind::sequential, 4, 7, 9), (std::vector<std::uint64_t>{0, 1, 2, 3}));
}

TEST(OrderTest, RandomVisitsEverySampleOnceAndChangesWithSeedAndEpoch) {
  const auto order = make_order(OrderKind::random, 1000, 1, 0);
  EXPECT_EQ(std::set<std::uint64_t>(order.begin(), order.end()).size(), 1000U);
  EXPECT_EQ(*std::ranges::max_element(order), 999U);
  EXPECT_EQ(order, make_order(OrderKind::random, 1000, 1, 0));
  EXPECT_NE(order, make_order(OrderKind::random, 1000, 1, 1));
  EXPECT_NE(order, make_order(OrderKind::random, 1000, 2, 0));
}

}  // namespace
}  // namespace precast::data
