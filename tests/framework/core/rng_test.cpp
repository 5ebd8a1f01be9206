#include "framework/core/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <vector>

namespace precast {
namespace {

using Block = std::array<std::uint32_t, 4>;

/// The known answers for philox4x32 with 10 rounds, from tests/kat_vectors of Random123 1.14.
TEST(Philox, GivesTheKnownAnswersOfRandom123) {
  EXPECT_EQ(RandomStream::block({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(RandomStream::block({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                                {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(RandomStream::block({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                                {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, IsAFunctionOfItsArguments) {
  RandomStream first(1, 2, 3, RandomUse::crop);
  RandomStream second(1, 2, 3, RandomUse::crop);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(first.next_u32(), second.next_u32());
}

TEST(RandomStream, DiffersInEveryArgument) {
  std::set<std::array<std::uint32_t, 2>> starts;
  const auto add = [&](std::uint64_t seed, std::uint32_t epoch, std::uint64_t position,
                       RandomUse use) {
    RandomStream stream(seed, epoch, position, use);
    const std::uint32_t first = stream.next_u32();
    starts.insert({first, stream.next_u32()});
  };
  const std::vector<std::uint64_t> wide = {0, 1, std::uint64_t{1} << 32,
                                           (std::uint64_t{1} << 40) - 1};
  for (const std::uint64_t seed : wide) {
    for (const std::uint32_t epoch : {0U, 1U, UINT32_MAX}) {
      for (const std::uint64_t position : wide) {
        for (const RandomUse use : {RandomUse::order, RandomUse::crop, RandomUse::flip,
                                    RandomUse::write_mode, RandomUse::test}) {
          add(seed, epoch, position, use);
        }
      }
    }
  }
  EXPECT_EQ(starts.size(), 4U * 3 * 4 * 5);
}

/// The result of one draw must not depend on the order in which the compiler evaluates operands.
TEST(RandomStream, TakesTheHighWordFirst) {
  RandomStream words(5, 0, 0, RandomUse::test);
  const std::uint64_t high = words.next_u32();
  const std::uint64_t low = words.next_u32();
  const std::uint64_t bound = std::uint64_t{1} << 62;
  EXPECT_EQ(RandomStream(5, 0, 0, RandomUse::test).below(bound), ((high << 32) | low) % bound);
}

TEST(RandomStream, DrawsBelowABoundWithoutBias) {
  RandomStream random(9, 0, 0, RandomUse::test);
  EXPECT_THROW(static_cast<void>(random.below(0)), std::logic_error);
  EXPECT_EQ(random.below(1), 0U);
  std::array<int, 6> counts{};
  constexpr int kDraws = 60'000;
  for (int i = 0; i < kDraws; ++i) ++counts.at(random.below(counts.size()));
  double chi_squared = 0;
  for (const int count : counts) chi_squared += (count - 10'000.0) * (count - 10'000.0) / 10'000.0;
  EXPECT_LT(chi_squared, 20.5);  // 99.9 % quantile, 5 degrees of freedom

  // The bound is 3/4 of the range. Without rejection, the lower third would be twice as likely as
  // the others.
  const std::uint64_t bound = std::uint64_t{3} << 62;
  int lower = 0;
  for (int i = 0; i < 30'000; ++i) lower += random.below(bound) < bound / 3 ? 1 : 0;
  EXPECT_NEAR(lower, 10'000, 300);
}

TEST(RandomStream, IsUniformOverTheUnitInterval) {
  RandomStream random(3, 1, 4, RandomUse::test);
  double sum = 0;
  for (int i = 0; i < 20'000; ++i) {
    const double value = random.uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  EXPECT_NEAR(sum / 20'000, 0.5, 0.01);
  for (int i = 0; i < 1000; ++i) {
    const double value = random.uniform(-2, -1);
    ASSERT_GE(value, -2.0);
    ASSERT_LT(value, -1.0);
  }
}

TEST(RandomStream, DrawsNormalNumbers) {
  RandomStream random(1, 0, 0, RandomUse::test);
  constexpr int kDraws = 200'000;
  double sum = 0;
  double squares = 0;
  int beyond_two = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double drawn = random.normal();
    sum += drawn;
    squares += drawn * drawn;
    beyond_two += std::abs(drawn) > 2 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.01);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
  EXPECT_NEAR(beyond_two / double{kDraws}, 0.0455, 0.002);
}

TEST(RandomPermutation, HasEveryNumberOnce) {
  for (const std::uint64_t n : {0U, 1U, 2U, 1000U}) {
    auto order = random_permutation(n, 7, 3);
    std::ranges::sort(order);
    std::vector<std::uint64_t> all(n);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(order, all);
  }
}

TEST(RandomPermutation, ChangesWithSeedEpochAndUse) {
  const auto order = random_permutation(100, 7, 3);
  EXPECT_EQ(order, random_permutation(100, 7, 3));
  EXPECT_NE(order, random_permutation(100, 8, 3));
  EXPECT_NE(order, random_permutation(100, 7, 4));
  EXPECT_NE(order, random_permutation(100, 7, 3, RandomUse::shuffle_on_write));
}

TEST(RandomPermutation, IsUniform) {
  std::map<std::vector<std::uint64_t>, int> counts;
  for (std::uint32_t epoch = 0; epoch < 12'000; ++epoch) ++counts[random_permutation(4, 1, epoch)];
  ASSERT_EQ(counts.size(), 24U);
  double chi_squared = 0;
  for (const auto& [order, count] : counts)
    chi_squared += (count - 500.0) * (count - 500.0) / 500.0;
  EXPECT_LT(chi_squared, 49.7);  // 99.9 % quantile, 23 degrees of freedom
}

}  // namespace
}  // namespace precast
