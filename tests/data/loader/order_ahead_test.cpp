#include "data/loader/order_ahead.h"

#include <gtest/gtest.h>

#include <atomic>

#include "framework/core/error.h"

namespace precast::data {
namespace {

/// An order of one sample, whose id is seed + epoch. Counts the calls of ids().
class EpochOrder final : public SampleOrder {
 public:
  [[nodiscard]] std::uint64_t size() const override { return 1; }
  [[nodiscard]] std::vector<std::uint64_t> ids(std::uint64_t seed,
                                               std::int64_t epoch) const override {
    ++calls;
    if (epoch == failing) throw ConfigError("no such epoch");
    return {seed + static_cast<std::uint64_t>(epoch)};
  }
  mutable std::atomic<int> calls{0};
  std::int64_t failing = -1;
};

TEST(OrderAheadTest, WhatWasPreparedIsNotMadeAgain) {
  const EpochOrder order;
  OrderAhead ahead(order, /*seed=*/100, /*large=*/1);
  ahead.prepare(3);
  EXPECT_EQ(ahead.take(3), std::vector<std::uint64_t>{103});
  EXPECT_EQ(order.calls, 1);
}

TEST(OrderAheadTest, AnotherEpochIsMadeWhenItIsAskedFor) {
  const EpochOrder order;
  OrderAhead ahead(order, 100, 1);
  ahead.prepare(3);
  EXPECT_EQ(ahead.take(7), std::vector<std::uint64_t>{107});
  EXPECT_EQ(ahead.take(3), std::vector<std::uint64_t>{103})
      << "the prepared order must not be returned for another epoch";
}

TEST(OrderAheadTest, SmallOrdersAreMadeWhenTheyAreAskedFor) {
  const EpochOrder order;
  OrderAhead ahead(order, 100, 2);
  ahead.prepare(3);
  EXPECT_EQ(order.calls, 0);
  EXPECT_EQ(ahead.take(3), std::vector<std::uint64_t>{103});
}

TEST(OrderAheadTest, AnErrorComesWhenTheEpochIsAskedForAndOnlyThen) {
  EpochOrder order;
  order.failing = 3;
  OrderAhead ahead(order, 100, 1);
  ahead.prepare(3);
  EXPECT_EQ(ahead.take(2), std::vector<std::uint64_t>{102});
  ahead.prepare(3);
  EXPECT_THROW(static_cast<void>(ahead.take(3)), ConfigError);
}

}  // namespace
}  // namespace precast::data
