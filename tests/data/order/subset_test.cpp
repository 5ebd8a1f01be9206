#include "data/order/subset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "data/beton/reader.h"
#include "data/order/order.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;
using testing::ElementsAre;
using testing::ThrowsMessage;

std::vector<std::uint64_t> ids(const std::string& text, std::uint64_t size) {
  const SampleSet members = choose_subset(text, size, "x.beton");
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < members.size(); ++i) all.push_back(members[i]);
  return all;
}

TEST(Subset, NumbersAndRangesAreThoseOfTheFile) {
  EXPECT_THAT(ids("3", 9), ElementsAre(0, 1, 2));
  EXPECT_THAT(ids("7:", 9), ElementsAre(7, 8));
  EXPECT_THAT(ids(":2", 9), ElementsAre(0, 1));
  EXPECT_EQ(ids("", 9).size(), 9U);
}

TEST(Subset, ARandomOneIsAFixedDrawThatASmallerOneIsPartOf) {
  const auto drawn = ids("random:64", 1000);
  EXPECT_EQ(drawn.size(), 64U);
  EXPECT_TRUE(std::ranges::is_sorted(drawn));
  EXPECT_EQ(std::ranges::adjacent_find(drawn), drawn.end());
  EXPECT_GT(drawn.back(), 900U);
  EXPECT_EQ(ids("random:64:0", 1000), drawn);
  EXPECT_NE(ids("random:64:1", 1000), drawn);
  EXPECT_TRUE(std::ranges::includes(drawn, ids("random:8", 1000)));
  EXPECT_EQ(ids("random:5", 5), ids("", 5));
  // These samples must never change, because a resumed run must have the same subset.
  EXPECT_THAT(ids("random:4", 100), ElementsAre(34, 46, 77, 80));
}

class SampleListTest : public ::testing::Test {
 protected:
  std::string list(const std::string& text) {
    write_file(folder_ / "ids.txt", text);
    return "@" + (folder_ / "ids.txt").string();
  }
  test::TemporaryFolder folder_;
};

TEST_F(SampleListTest, NamesSamplesAndRangesInAnyOrder) {
  EXPECT_THAT(ids(list("7\n# comment\n\n 2:4 \r\n0 # the first\n5#\n \t#"), 9),
              ElementsAre(0, 2, 3, 5, 7));
  EXPECT_THAT(ids(list("8\n"), 9), ElementsAre(8));
  EXPECT_EQ(ids(list("0:9\n"), 9), ids("", 9));
  EXPECT_TRUE(is_subset("@ids.txt"));
  EXPECT_FALSE(is_subset("@"));
}

TEST_F(SampleListTest, MistakesAreNamedWithFileAndLine) {
  const auto fails = [&](const std::string& text, const auto&... named) {
    EXPECT_THAT([&] { (void)ids(list(text), 9); },
                ThrowsMessage<ConfigError>(Names("subset", "ids.txt", named...)))
        << text;
  };
  fails("1\nx\n", "ids.txt:2", "'x'");
  for (const char* line : {"-1", "3:3", "4:3", "1:", ":2", "1:2:3", "1 2", "1.5", "+1",
                           "18446744073709551615", "99999999999999999999"})
    fails(std::string("0\n") + line, "ids.txt:2", line);
  fails("0\n9\n", "ids.txt:2", "x.beton", "got 9");
  fails("\n5:10\n", "ids.txt:2", "x.beton", "5:10");
  fails("4\n1\n4\n", "ids.txt:3", "4", "line 1");
  fails("3:6\n0\n5\n", "ids.txt:3", "5", "line 1");
  fails("5\n0:9\n", "ids.txt:2", "5", "line 1");
  fails("");
  fails("# nothing\n\n");
  EXPECT_THAT([&] { (void)ids("@" + (folder_ / "none.txt").string(), 9); },
              ThrowsMessage<ConfigError>(Names("subset", "none.txt")));
  EXPECT_THROW((void)ids("@", 9), ConfigError);
}

TEST_F(SampleListTest, AnOrderHasItsSamplesAndFiltersThem) {
  test::write_made_beton(folder_ / "x.beton",
                         {.samples = 100, .width = 1, .height = 1, .classes = 5});
  const BetonReader reader(folder_ / "x.beton");
  const std::string listed = list("90\n11\n20:24\n");
  auto all = make_order(reader, {.name = "random", .subset = listed})->ids(3, 1);
  std::ranges::sort(all);
  EXPECT_THAT(all, ElementsAre(11, 20, 21, 22, 23, 90));
  const auto some =
      make_order(reader, {.name = "sequential", .subset = listed, .filter = "label == 1"});
  EXPECT_THAT(some->ids(0, 0), ElementsAre(11, 21));
}

TEST_F(SampleListTest, IsIdentifiedByItsSamples) {
  const auto identity = [](const std::string& text) { return subset_identity(text, 9, "x.beton"); };
  const std::string one = identity(list("1\n3:5\n"));
  EXPECT_EQ(identity(list("# the same\n4\n3\n1\n")), one);
  EXPECT_NE(identity(list("1\n3:6\n")), one);
  EXPECT_NE(identity(list("1\n3\n5\n")), one);
  EXPECT_THAT(one, testing::Not(testing::HasSubstr(folder_.path().string())));
  for (const char* text : {"", "4", "2:6", "random:4"}) EXPECT_EQ(identity(text), text);
  EXPECT_THROW((void)identity("@"), ConfigError);
}

TEST(Subset, InvalidSubsetsAreRefused) {
  for (const char* text : {"random:", "random:0", "random:x", "random:3:", "random:3:x", "random",
                           "a", "3:3", "-1", "1:2:3"}) {
    EXPECT_FALSE(is_subset(text)) << text;
    EXPECT_THROW((void)ids(text, 9), ConfigError) << text;
  }
  EXPECT_THAT([] { (void)ids("random:10", 9); },
              ThrowsMessage<ConfigError>(Names("subset", 9, "x.beton", "random:10")));
  EXPECT_THAT([] { (void)ids("10", 9); }, ThrowsMessage<ConfigError>(Names("subset", 9, 10)));
}

TEST(Subset, AnOrderHasTheSameDrawWhateverItsSeedAndFiltersIt) {
  const test::TemporaryFolder folder;
  test::write_made_beton(folder / "x.beton",
                         {.samples = 100, .width = 1, .height = 1, .classes = 5});
  const BetonReader reader(folder / "x.beton");
  const auto order = make_order(reader, {.name = "random", .subset = "random:20"});
  for (const std::uint64_t seed : {0U, 7U}) {
    auto all = order->ids(seed, /*epoch=*/3);
    std::ranges::sort(all);
    EXPECT_EQ(all, ids("random:20", 100));
  }
  const SampleSet filtered =
      select_samples(reader, {.subset = "random:20", .filter = "label == 1"});
  for (std::uint64_t i = 0; i < filtered.size(); ++i) {
    EXPECT_EQ(filtered[i] % 5, 1U);
    EXPECT_TRUE(std::ranges::binary_search(ids("random:20", 100), filtered[i]));
  }
  EXPECT_GT(filtered.size(), 0U);
}

}  // namespace
}  // namespace precast::data
