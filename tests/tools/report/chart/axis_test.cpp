#include "tools/report/chart/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace precast::tools {
namespace {

using ::testing::ElementsAre;

AxisMap map_of(const Axis& axis, const std::vector<double>& values, int ticks = 5) {
  Extent extent(axis.scale);
  for (const double value : values) extent.add(value);
  return {axis, extent, 0, 100, ticks};
}

std::vector<std::string> texts(const AxisMap& map) {
  std::vector<std::string> all;
  for (const Tick& tick : map.ticks()) all.push_back(tick.text);
  return all;
}

TEST(AxisTest, LinearTicksAreRoundAndHoldTheData) {
  const AxisMap map = map_of({}, {0.113, 0.87});
  EXPECT_THAT(texts(map), ElementsAre("0", "0.2", "0.4", "0.6", "0.8", "1.0"));
  EXPECT_NEAR(map.at(0), 0, 1e-9);
  EXPECT_NEAR(map.at(0.5), 50, 1e-9);
  EXPECT_THAT(texts(map_of({}, {1200, 9100})),
              ElementsAre("0", "2,000", "4,000", "6,000", "8,000", "10,000"));
  EXPECT_THAT(texts(map_of({}, {-1, 1}, 4)), ElementsAre("-1.0", "-0.5", "0", "0.5", "1.0"));
}

TEST(AxisTest, WholeNumbersHaveNoTicksBetweenAndEndAtTheData) {
  EXPECT_THAT(texts(map_of({.integer = true}, {0, 3}, 8)), ElementsAre("0", "1", "2", "3"));
  const AxisMap map = map_of({.integer = true}, {0, 18}, 5);
  EXPECT_THAT(texts(map), ElementsAre("0", "5", "10", "15"));
  EXPECT_NEAR(map.at(18), 100, 1e-9);
}

TEST(AxisTest, LogarithmicTicksArePowersOfTenOrPartsOfThem) {
  const Axis log{.scale = Scale::logarithmic};
  EXPECT_THAT(texts(map_of(log, {3, 4000}, 5)), ElementsAre("1", "10", "100", "1,000", "10,000"));
  EXPECT_THAT(texts(map_of(log, {0.15, 0.9}, 5)), ElementsAre("0.1", "0.2", "0.5", "1"));
  const AxisMap map = map_of(log, {1, 100});
  EXPECT_NEAR(map.at(10), 50, 1e-9);
  EXPECT_TRUE(std::isnan(map.at(0)));
  EXPECT_TRUE(std::isnan(map.at(-1)));
}

TEST(AxisTest, OneValueNoneAndNotANumberStillGiveAnAxis) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const Scale scale : {Scale::linear, Scale::logarithmic}) {
    for (const std::vector<double>& values : {std::vector<double>{},
                                              {5},
                                              {0},
                                              {-3},
                                              {1e-300, 1e300},
                                              {kNaN, kInfinity, 2},
                                              {1e-12, 1e-12}}) {
      const AxisMap map = map_of({.scale = scale}, values);
      EXPECT_GE(map.ticks().size(), 1U);
      EXPECT_LE(map.ticks().size(), 20U);
      for (const double value : values) {
        if (!std::isfinite(value) || (scale == Scale::logarithmic && value <= 0)) continue;
        EXPECT_GE(map.at(value), 0) << value;
        EXPECT_LE(map.at(value), 100) << value;
      }
    }
  }
}

TEST(AxisTest, GivenEndsAreKept) {
  const AxisMap map = map_of({.min = 0, .max = 30}, {3, 12});
  EXPECT_EQ(map.min(), 0);
  EXPECT_EQ(map.max(), 30);
  EXPECT_EQ(map.at(1000), 100);
}

TEST(AxisTest, TheGivenEndIsKeptForOneValue) {
  for (const Scale scale : {Scale::linear, Scale::logarithmic}) {
    const AxisMap map = map_of({.scale = scale, .max = 1}, {1, 1});
    EXPECT_EQ(map.max(), 1);
    EXPECT_LT(map.min(), 1);
    EXPECT_GT(map_of({.scale = scale, .min = 1, .max = 1}, {1}).max(), 1);
  }
}

TEST(AxisTest, StepsAreOneTwoTwoAndAHalfOrFive) {
  EXPECT_DOUBLE_EQ(nice_step(10, 10), 1);
  EXPECT_DOUBLE_EQ(nice_step(10, 6), 2);
  EXPECT_DOUBLE_EQ(nice_step(1, 4), 0.25);
  EXPECT_DOUBLE_EQ(nice_step(100, 3), 50);
  EXPECT_DOUBLE_EQ(nice_step(0.9, 1), 1);
}

}  // namespace
}  // namespace precast::tools
