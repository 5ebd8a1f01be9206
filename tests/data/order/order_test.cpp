#include "data/order/order.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "data/beton/reader.h"
#include "data/order/mixing.h"
#include "data/order/pages.h"
#include "data/write/writer.h"
#include "framework/core/error.h"
#include "framework/core/rng.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/part_spec.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;
using test::part_spec;
using ::testing::ElementsAre;
using Ids = std::vector<std::uint64_t>;

/// 1201 samples of 64 x 64 px in pages of 2 MiB (170 samples per page), sorted by class.
class OrderTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TemporaryFolder;
    test::write_made_beton(*folder_ / "sorted.beton",
                           {.samples = 1201, .width = 64, .height = 64, .sorted = true});
    sorted_ = new BetonReader(*folder_ / "sorted.beton");
  }
  static void TearDownTestSuite() {
    delete sorted_;
    delete folder_;
  }

  static Ids ids(const OrderOptions& options, std::uint64_t seed = 1, std::int64_t epoch = 0) {
    return make_order(*sorted_, options)->ids(seed, epoch);
  }
  static Ids sorted(Ids ids) {
    std::ranges::sort(ids);
    return ids;
  }
  static std::vector<std::int64_t> labels(const Ids& ids) {
    std::vector<std::int64_t> all;
    for (const std::uint64_t id : ids) all.push_back(sorted_->integer(id, 1));
    return all;
  }
  static std::string error(const OrderOptions& options) {
    try {
      static_cast<void>(make_order(*sorted_, options));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "none";
  }

  static test::TemporaryFolder* folder_;
  static BetonReader* sorted_;
};

test::TemporaryFolder* OrderTest::folder_ = nullptr;
BetonReader* OrderTest::sorted_ = nullptr;

Ids count_up(std::uint64_t end) {
  Ids all(end);
  for (std::uint64_t i = 0; i < end; ++i) all[i] = i;
  return all;
}

TEST_F(OrderTest, SequentialIsTheFilesOrder) {
  EXPECT_EQ(ids({}), count_up(1201));
}

TEST_F(OrderTest, RandomIsTheSeedsPermutation) {
  EXPECT_EQ(ids({.name = "random"}, 7, 3), random_permutation(1201, 7, 3));
}

TEST_F(OrderTest, PermutationsVisitEverySampleOnceAndChangeWithSeedAndEpoch) {
  for (const std::string name : {"random", "quasi_random"}) {
    const OrderOptions options{.name = name, .window_pages = 3};
    const Ids order = ids(options);
    EXPECT_EQ(sorted(order), count_up(1201)) << name;
    EXPECT_EQ(order, ids(options));
    EXPECT_NE(order, ids(options, 1, 1));
    EXPECT_NE(order, ids(options, 2, 0));
  }
}

TEST_F(OrderTest, EveryOrderKeepsItsSizeAndItsMembers) {
  OrderRegistry registry{"order"};
  register_orders(registry);
  for (const auto& entry : registry.entries()) {
    const auto order = make_order(
        *sorted_, {.name = entry.name,
                   .subset = "100:900",
                   .filter = "label in [1, 3, 5]",
                   .repeats = 3,
                   .part = entry.name == "weighted"
                               ? part_spec("", "{weights: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]}").options
                               : ConfigNode{}});
    const Ids found = order->ids(5, 2);
    EXPECT_EQ(found.size(), order->size()) << entry.name;
    EXPECT_EQ(order->size(), 3 * 360U) << entry.name;
    for (const std::uint64_t id : found) {
      EXPECT_TRUE(id >= 100 && id < 900 && sorted_->integer(id, 1) % 2 == 1) << entry.name;
    }
  }
}

/// The largest number of pages that have samples both before and after a position of the order.
std::uint64_t max_open_pages(const BetonReader& reader, const Ids& order) {
  std::map<std::uint64_t, std::pair<std::size_t, std::size_t>> uses;
  for (std::size_t p = 0; p < order.size(); ++p) {
    const auto [at, fresh] = uses.try_emplace(page_of(reader, order[p]), p, p);
    at->second.second = p;
  }
  std::vector<std::int64_t> change(order.size() + 1);
  for (const auto& [page, use] : uses) {
    ++change[use.first];
    --change[use.second + 1];
  }
  std::int64_t open = 0;
  std::int64_t most = 0;
  for (const std::int64_t step : change) most = std::max(most, open += step);
  return static_cast<std::uint64_t>(most);
}

TEST_F(OrderTest, QuasiRandomHasAtMostItsWindowOfPagesOpen) {
  for (const std::uint64_t window : {1, 2, 3, 5}) {
    const Ids order = ids({.name = "quasi_random", .window_pages = window});
    EXPECT_LE(max_open_pages(*sorted_, order), window);
    EXPECT_EQ(sorted(order), count_up(1201));
  }
  EXPECT_EQ(max_open_pages(*sorted_, ids({.name = "random"})), 8U) << "the file has 8 pages";
}

TEST_F(OrderTest, QuasiRandomOfOnePageShufflesWithinPagesAndTheirOrder) {
  const Ids order = ids({.name = "quasi_random", .window_pages = 1});
  std::vector<std::uint64_t> pages;
  for (const std::uint64_t id : order) {
    if (pages.empty() || pages.back() != page_of(*sorted_, id))
      pages.push_back(page_of(*sorted_, id));
  }
  EXPECT_EQ(pages.size(), 8U) << "all samples of a page must come before those of the next page";
  EXPECT_FALSE(std::ranges::is_sorted(pages));
  EXPECT_FALSE(std::ranges::is_sorted(order.begin(), order.begin() + 50));
}

TEST_F(OrderTest, ALargerWindowMixesClassesBetterAndAllPagesAsRandomDoes) {
  const auto mixing = [&](const OrderOptions& options) {
    double sum = 0;
    for (std::int64_t epoch = 0; epoch < 10; ++epoch)
      sum += class_mixing(labels(ids(options, 1, epoch)), 16).ratio();
    return sum / 10;
  };
  const double one = mixing({.name = "quasi_random", .window_pages = 1});
  const double three = mixing({.name = "quasi_random", .window_pages = 3});
  const double all = mixing({.name = "quasi_random", .window_pages = 8});
  EXPECT_LT(one, 0.35);
  EXPECT_GT(three, one + 0.15);
  EXPECT_GT(all, 0.9);
  EXPECT_NEAR(mixing({.name = "random"}), 1, 0.01);
}

TEST_F(OrderTest, ClassMixingOfASortedFileIsOneClassABatch) {
  const ClassMixing mixing = class_mixing(labels(count_up(1201)), 20);
  EXPECT_LT(mixing.classes_per_batch, 1.2);
  // 10 classes of 120 samples: 10 (1 - .9^20), ignoring the small gain from drawing without
  // replacement.
  EXPECT_NEAR(mixing.expected_classes_per_batch, 8.79, 0.03);
}

TEST_F(OrderTest, SamplesWithoutBytesShareOnePage) {
  test::write_bytes(*folder_ / "scalars.beton", test::golden_beton("scalars_only"));
  const BetonReader numbers(*folder_ / "scalars.beton");
  EXPECT_EQ(page_of(numbers, 3), kNoPage);
  const Ids order = make_order(numbers, {.name = "quasi_random", .window_pages = 2})->ids(1, 0);
  EXPECT_EQ(sorted(order), count_up(50));
  EXPECT_NE(order, count_up(50));
}

TEST_F(OrderTest, WindowComesFromBatchSizeMemoryOrMebibytes) {
  constexpr std::uint64_t kPage = std::uint64_t{8} << 20;
  constexpr std::uint64_t kGibibyte = std::uint64_t{1} << 30;
  EXPECT_EQ(window_pages("ffcv", 512, kPage, kGibibyte), 1024U);
  EXPECT_EQ(window_pages("auto", 512, kPage, 1000 * kGibibyte), 1024U);
  EXPECT_EQ(window_pages("auto", 512, kPage, kGibibyte), 32U);
  EXPECT_EQ(window_pages("auto", 512, kPage, 1), 1U);
  EXPECT_EQ(window_pages("100", 512, kPage, kGibibyte), 12U);
  EXPECT_EQ(window_pages("1", 512, kPage, kGibibyte), 1U);
  for (const std::string wrong : {"", "0", "-1", "8MB", "99999999999999999999"})
    EXPECT_THROW(static_cast<void>(window_pages(wrong, 512, kPage, kGibibyte)), ConfigError);
}

TEST_F(OrderTest, RepeatsAreAdjacent) {
  EXPECT_EQ(Ids(ids({.subset = "2", .repeats = 3})), (Ids{0, 0, 0, 1, 1, 1}));
  const Ids order = ids({.name = "random", .repeats = 4});
  ASSERT_EQ(order.size(), 4 * 1201U);
  std::set<std::uint64_t> seen;
  for (std::size_t p = 0; p < order.size(); p += 4) {
    EXPECT_TRUE(seen.insert(order[p]).second);
    for (std::size_t copy = 1; copy < 4; ++copy) EXPECT_EQ(order[p + copy], order[p]);
  }
}

TEST_F(OrderTest, SubsetsAreTheFirstSamplesOrARange) {
  EXPECT_EQ(ids({.subset = "3"}), (Ids{0, 1, 2}));
  EXPECT_EQ(ids({.subset = "1198:"}), (Ids{1198, 1199, 1200}));
  EXPECT_EQ(ids({.subset = ":2"}), (Ids{0, 1}));
  EXPECT_EQ(ids({.subset = "5:7"}), (Ids{5, 6}));
  for (const std::string wrong : {"x", "5:5", "7:5", "-3", "1:2:3", "0", "3 "}) {
    EXPECT_THAT(error({.subset = wrong}), Names("subset", "'" + wrong + "'")) << wrong;
  }
  EXPECT_THAT(error({.subset = "1202"}), Names("subset", 1201, "'1202'"));
  EXPECT_THAT(error({.subset = "1201:"}), Names("subset", 1201, "'1201:'"));
}

TEST_F(OrderTest, WeightsOfClassesAreProbabilities) {
  const OrderOptions options{
      .name = "weighted",
      .part = part_spec("", "{weights: [0, 1, 2, 0, 0, 0, 0, 0, 0, 5]}").options};
  std::map<std::int64_t, double> counts;
  double all = 0;
  for (std::int64_t epoch = 0; epoch < 100; ++epoch) {
    for (const std::int64_t label : labels(ids(options, 3, epoch))) ++counts[label];
    all += 1201;
  }
  EXPECT_EQ(counts.size(), 3U);
  EXPECT_NEAR(counts[1] / all, 1.0 / 8, 0.005);
  EXPECT_NEAR(counts[2] / all, 2.0 / 8, 0.005);
  EXPECT_NEAR(counts[9] / all, 5.0 / 8, 0.005);
}

TEST_F(OrderTest, WeightsOfSamplesComeFromAField) {
  // The subset is samples 0 to 4. Sample i has weight i, so its probability is i / 10.
  const OrderOptions options{
      .name = "weighted", .subset = "5", .part = part_spec("", "{weight_field: weight}").options};
  std::map<std::uint64_t, double> counts;
  for (std::int64_t epoch = 0; epoch < 10000; ++epoch)
    for (const std::uint64_t id : ids(options, 3, epoch)) ++counts[id];
  EXPECT_EQ(counts.size(), 4U);
  for (const auto& [id, count] : counts)
    EXPECT_NEAR(count / 50000, static_cast<double>(id) / 10, 0.01);
}

TEST_F(OrderTest, WrongWeightsAreRefused) {
  const auto error_of = [](const std::string& options) {
    return error({.name = "weighted", .part = part_spec("", options).options});
  };
  EXPECT_THAT(error_of("{}"), Names("weights", "weighted"));
  EXPECT_THAT(error_of("{weights: [1, 2]}"), Names("weights", 2, "sample", "label"));
  EXPECT_THAT(error_of("{weights: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]}"), Names("weights", "sum", 0));
  EXPECT_THAT(error_of("{weights: [0, 0, 0, 0, -1, 0, 0, 0, 0, 0]}"),
              Names("weights", "-1", "sample"));
  EXPECT_THAT(error_of("{weight_field: label}"), Names("weight_field", "float", "'label'"));
  EXPECT_THAT(error_of("{weight: [1]}"), Names("weight", "weights"));
}

TEST_F(OrderTest, WrongWeightsOfAFieldAreReportedWithFieldAndFile) {
  const test::TemporaryFolder folder;
  for (const double wrong : {-2.5, std::nan(""), HUGE_VAL, 0.0}) {
    const std::filesystem::path path = folder / "x.beton";
    BetonWriter writer(path, {{"rarity", FieldType::floating}}, 2);
    for (const double weight : {0.0, wrong}) {
      std::array<EncodedValue, 1> values;
      values[0].metadata.resize(sizeof weight);
      store(values[0].metadata.data(), weight);
      writer.add(values);
    }
    writer.finish();
    const BetonReader reader(path);
    const OrderOptions options{.name = "weighted",
                               .part = part_spec("", "{weight_field: rarity}").options};
    EXPECT_THAT([&] { (void)make_order(reader, options); },
                testing::ThrowsMessage<ConfigError>(
                    Names("weight_field", "'rarity'", fmt::format("{}", wrong), path)));
  }
}

TEST_F(OrderTest, BalancedClassesDifferByAtMostOneAndRepeatOnlyWhenAllWereSeen) {
  // Classes 0 to 9 have 121, 120, ... samples; the subset contains only 10 samples of class 9.
  const Ids order = ids({.name = "class_balanced", .subset = "1091"});
  std::map<std::int64_t, std::map<std::uint64_t, int>> seen;
  for (const std::uint64_t id : order) ++seen[sorted_->integer(id, 1)][id];
  ASSERT_EQ(seen.size(), 10U);
  for (const auto& [label, members] : seen) {
    int sum = 0;
    int least = 1000;
    int most = 0;
    for (const auto& [id, count] : members) {
      sum += count;
      least = std::min(least, count);
      most = std::max(most, count);
    }
    EXPECT_TRUE(sum == 109 || sum == 110) << label;
    EXPECT_LE(most - least, 1) << label;
  }
  EXPECT_EQ(seen[9].size(), 10U);
  EXPECT_EQ(class_mixing(labels(order), 10).classes_per_batch, 10);
}

TEST_F(OrderTest, UnknownOrdersAreRefusedWithAHint) {
  EXPECT_THAT(error({.name = "quasi_randon"}), Names("order", "'quasi_randon'", "'quasi_random'"));
  EXPECT_THAT(error({.repeats = 0}), Names("repeats", 1, 0));
}

}  // namespace
}  // namespace precast::data
