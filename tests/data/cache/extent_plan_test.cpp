#include "data/cache/extent_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "framework/core/rng.h"

namespace precast::data {
namespace {

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
constexpr std::uint64_t kPage = 2 * kMebibyte;
constexpr std::uint64_t kFile = 100 * kPage;

/// Returns the range of a sample of 1 MiB for each page of the list, alternately in the first and
/// in the second half of the page.
std::vector<FileRange> in_pages(const std::vector<std::uint64_t>& pages) {
  std::vector<FileRange> ranges;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const std::uint64_t begin = pages[i] * kPage + (i % 2) * kMebibyte;
    ranges.push_back({begin, begin + kMebibyte});
  }
  return ranges;
}

/// Uses the ranges in order, as the cache does, and checks that each extent covers its uses and
/// that the plan's totals are correct.
void expect_valid(const ExtentPlan& plan, const std::vector<FileRange>& ranges) {
  ASSERT_EQ(plan.extent_of.size(), ranges.size());
  std::vector<std::uint32_t> left;
  std::uint64_t live = 0;
  std::uint64_t most = 0;
  std::uint64_t read = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const std::uint32_t e = plan.extent_of[i];
    if (ranges[i].begin == ranges[i].end) {
      ASSERT_EQ(e, ExtentPlan::kNone);
      continue;
    }
    const Extent& extent = plan.extents.at(e);
    ASSERT_LE(extent.range.begin, ranges[i].begin);
    ASSERT_GE(extent.range.end, ranges[i].end);
    if (e >= left.size()) {
      ASSERT_EQ(e, left.size()) << "extents must be in the order of their first use";
      left.push_back(extent.uses);
      live += buffer_bytes(extent.range);
      most = std::max(most, live);
      read += extent.range.end - extent.range.begin;
    }
    ASSERT_GT(left[e], 0U);
    if (--left[e] == 0) live -= buffer_bytes(extent.range);
  }
  EXPECT_EQ(live, 0U) << "each extent must count all of its uses";
  EXPECT_EQ(left.size(), plan.extents.size());
  EXPECT_EQ(most, plan.max_live_bytes);
  EXPECT_EQ(read, plan.read_bytes);
}

TEST(ExtentPlanTest, AWindowOfPagesIsReadOnceEach) {
  const auto ranges = in_pages({0, 1, 0, 1, 2, 1, 2, 3});
  const ExtentPlan plan = plan_extents(ranges, kPage, kFile, 2 * kPage);
  expect_valid(plan, ranges);
  EXPECT_EQ(plan.extents.size(), 4U);
  EXPECT_EQ(plan.extents[1].uses, 3U);
  EXPECT_EQ(plan.max_live_bytes, 2 * kPage);
  EXPECT_EQ(plan.extents[3].range.begin, 3 * kPage);
}

TEST(ExtentPlanTest, WithoutRoomThePageWhoseNextUseIsFurthestIsReadTwice) {
  // When page 2 is used, the next use of page 0 is later than the next use of page 1.
  const auto ranges = in_pages({0, 0, 1, 1, 2, 2, 1, 1, 0, 0});
  const ExtentPlan plan = plan_extents(ranges, kPage, kFile, 2 * kPage);
  expect_valid(plan, ranges);
  ASSERT_EQ(plan.extents.size(), 4U);
  EXPECT_EQ(plan.extents[0].uses, 2U);
  EXPECT_EQ(plan.extents[1].uses, 4U);
  EXPECT_EQ(plan.extents[3].range.begin, 0U);
}

TEST(ExtentPlanTest, ScatteredSamplesAreReadByThemselves) {
  std::vector<std::uint64_t> pages;
  RandomStream random(1, 0, 0, RandomUse::test);
  for (int i = 0; i < 500; ++i) pages.push_back(random.below(100));
  std::vector<FileRange> ranges = in_pages(pages);
  for (FileRange& range : ranges) range.end = range.begin + 100'000;
  const ExtentPlan scattered = plan_extents(ranges, kPage, kFile, 4 * kPage);
  expect_valid(scattered, ranges);
  EXPECT_EQ(scattered.read_bytes, 500 * 100'000U);
  const ExtentPlan fits = plan_extents(in_pages(pages), kPage, kFile, 100 * kPage);
  expect_valid(fits, in_pages(pages));
  EXPECT_LE(fits.extents.size(), 100U) << "if the file fits in memory, each page must be read once";
}

TEST(ExtentPlanTest, SamplesAcrossPagesAndWithoutBytes) {
  std::vector<FileRange> ranges = in_pages({0, 0, 1});
  ranges.push_back({});
  ranges.push_back({kPage - 10, kPage + 10});
  ranges.push_back({0, kPage + 10});
  ranges.push_back({0, 10});
  const ExtentPlan plan = plan_extents(ranges, kPage, kFile, 10 * kPage);
  expect_valid(plan, ranges);
}

TEST(ExtentPlanTest, TheLastPageEndsWithTheFile) {
  const std::vector<FileRange> ranges = {{10, 2000}};
  const ExtentPlan plan = plan_extents(ranges, kPage, 3000, kPage);
  EXPECT_TRUE(plan.extents[0].range.end <= 3000);
}

TEST(ExtentPlanTest, RandomPlansAreValidAndKeepTheirCapacity) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    RandomStream random(seed, 0, 0, RandomUse::test);
    const std::uint64_t capacity = (1 + random.below(12)) * kMebibyte;
    std::vector<FileRange> ranges;
    for (std::uint64_t i = 0; i < 1 + random.below(300); ++i) {
      const std::uint64_t begin = random.below(12 * kPage);
      ranges.push_back({begin, begin + random.below(700'000)});
      if (random.below(20) == 0) ranges.back().end = begin;
    }
    const ExtentPlan plan = plan_extents(ranges, kPage, kFile, capacity);
    expect_valid(plan, ranges);
    EXPECT_LE(plan.max_live_bytes, std::max(capacity, kMebibyte)) << seed;
  }
}

TEST(ExtentPlanTest, NoSamplesNoReads) {
  EXPECT_TRUE(plan_extents({}, kPage, kFile, kPage).extents.empty());
}

}  // namespace
}  // namespace precast::data
