#include "tools/experiments/grid/occupancy.h"

#include <gtest/gtest.h>

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

ordered_json record(const char* event, double time, const char* trial = "",
                    const char* slot = "cpu") {
  return {{"event", event}, {"trial", trial}, {"slot", slot}, {"slots", 2}, {"time", time}};
}

TEST(OccupancyTest, CountsSlotsWhileAGridRan) {
  const Occupancy slots =
      occupancy({record("begin", 100), record("start", 100, "a"), record("start", 101, "b"),
                 record("end", 108, "b"), record("end", 110, "a"), record("finish", 110)});
  EXPECT_DOUBLE_EQ(slots.wall_seconds, 10);
  EXPECT_DOUBLE_EQ(slots.slot_seconds, 20);
  EXPECT_DOUBLE_EQ(slots.busy_seconds, 17);
}

TEST(OccupancyTest, PausesAfterAKillAndArrayTasksDoNotCount) {
  const Occupancy slots = occupancy(
      {record("begin", 0), record("start", 0, "a"), record("start", 1, "b"), record("end", 4, "a"),
       record("start", 500, "c", kTaskSlot), record("end", 600, "c", kTaskSlot),
       record("begin", 1000), record("start", 1000, "b"), record("end", 1006, "b"),
       record("finish", 1006), record("start", 2000, "d", kTaskSlot)});
  EXPECT_DOUBLE_EQ(slots.wall_seconds, 4 + 6);
  EXPECT_DOUBLE_EQ(slots.slot_seconds, 2 * (4 + 6));
  EXPECT_DOUBLE_EQ(slots.busy_seconds, 4 + 3 + 6);
}

TEST(OccupancyTest, ATrialThatATaskTakesOverEndsWithTheGridThatWasKilled) {
  const Occupancy slots =
      occupancy({record("begin", 0), record("start", 0, "a"), record("start", 4, "b"),
                 record("start", 90'000, "a", kTaskSlot), record("end", 90'600, "a", kTaskSlot)});
  EXPECT_DOUBLE_EQ(slots.wall_seconds, 4);
  EXPECT_DOUBLE_EQ(slots.slot_seconds, 8);
  EXPECT_DOUBLE_EQ(slots.busy_seconds, 4);
}

}  // namespace
}  // namespace precast::tools
