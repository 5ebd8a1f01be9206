#include "data/order/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <numeric>

namespace precast::data {
namespace {

using ::testing::ElementsAre;

TEST(SplitTest, EachSampleIsInOnePartOfTheRequestedSize) {
  const std::vector<std::int64_t> classes(1000, 0);
  const std::array<std::uint64_t, 4> sizes = {1, 0, 333, 666};
  const auto parts = split_stratified(classes, sizes, 5);
  std::vector<std::uint64_t> all;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(parts[i].size(), sizes.at(i));
    EXPECT_TRUE(std::ranges::is_sorted(parts[i]));
    all.insert(all.end(), parts[i].begin(), parts[i].end());
  }
  std::ranges::sort(all);
  std::vector<std::uint64_t> expected(1000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
  EXPECT_EQ(split_stratified(classes, sizes, 5), parts);
  EXPECT_NE(split_stratified(classes, sizes, 6), parts);
}

TEST(SplitTest, OfTwoPartsEachHasOfEachClassItsShareToWithinOne) {
  std::vector<std::int64_t> classes;
  for (std::int64_t label = 0; label < 40; ++label)
    classes.insert(classes.end(), static_cast<std::size_t>(3 + 7 * label), label);
  const std::uint64_t first = classes.size() / 10;
  const auto parts =
      split_stratified(classes, std::array<std::uint64_t, 2>{first, classes.size() - first}, 0);
  std::map<std::int64_t, double> found;
  for (const std::uint64_t i : parts[0]) ++found[classes[i]];
  for (std::int64_t label = 0; label < 40; ++label)
    EXPECT_NEAR(found[label], 0.1 * static_cast<double>(3 + 7 * label), 1.01) << label;
}

TEST(SplitTest, SizesOfPartsAddUp) {
  EXPECT_THAT(part_sizes(std::array{0.9, 0.1}, 10), ElementsAre(9, 1));
  EXPECT_THAT(part_sizes(std::array{1. / 3, 1. / 3, 1. / 3}, 10), ElementsAre(3, 4, 3));
  EXPECT_THAT(part_sizes(std::array{0.5, 0.5}, 1), ElementsAre(1, 0));
  EXPECT_THAT(part_sizes(std::array{1.0}, 7), ElementsAre(7));
}

}  // namespace
}  // namespace precast::data
