#include "framework/core/format.h"

#include <gtest/gtest.h>

#include <limits>

namespace precast {
namespace {

TEST(FormatDuration, ChoosesUnitsAndRoundsIntoTheNext) {
  EXPECT_EQ(format_duration(0), "0.0 s");
  EXPECT_EQ(format_duration(6.74), "6.7 s");
  EXPECT_EQ(format_duration(59.94), "59.9 s");
  EXPECT_EQ(format_duration(59.96), "1:00");
  EXPECT_EQ(format_duration(245), "4:05");
  EXPECT_EQ(format_duration(3599.6), "1:00:00");
  EXPECT_EQ(format_duration(3723), "1:02:03");
  EXPECT_EQ(format_duration(360'000), "100:00:00");
  EXPECT_EQ(format_duration(-1), "?");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::infinity()), "?");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::quiet_NaN()), "?");
}

TEST(FormatBytes, ChoosesUnitsAndRoundsIntoTheNext) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1.0 kB");
  EXPECT_EQ(format_bytes(12'345'678), "12.3 MB");
  EXPECT_EQ(format_bytes(999'960), "1.0 MB");
  EXPECT_EQ(format_bytes(1.5e15), "1500.0 TB");
}

TEST(FormatCount, HasTheRightPlural) {
  EXPECT_EQ(format_count(1, "page"), "1 page");
  EXPECT_EQ(format_count(0, "page"), "0 pages");
  EXPECT_EQ(format_count(2, "class"), "2 classes");
  EXPECT_EQ(format_count(3, "batch"), "3 batches");
  EXPECT_EQ(format_count(2, "epoch"), "2 epochs");
  EXPECT_EQ(format_count(1, "class"), "1 class");
}

TEST(FirstNames, CountsTheNamesThatItLeavesOut) {
  EXPECT_EQ(first_names({}, 2), "");
  EXPECT_EQ(first_names({"a", "b"}, 2), "a, b");
  EXPECT_EQ(first_names({"a", "b", "c", "d"}, 2), "a, b and 2 more");
}

}  // namespace
}  // namespace precast
