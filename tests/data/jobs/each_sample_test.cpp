#include "data/jobs/each_sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include "framework/core/error.h"

namespace precast::data {
namespace {

TEST(EachSample, GivesEachSampleToOneThread) {
  std::vector<std::atomic<int>> seen(1000);
  std::atomic<int> made{0};
  EXPECT_TRUE(for_each_sample(seen.size(), {.workers = 3}, [&] {
    ++made;
    return [&](std::uint64_t sample) { ++seen[sample]; };
  }));
  EXPECT_EQ(made, 3);
  for (const auto& count : seen) EXPECT_EQ(count, 1);
}

TEST(EachSample, TheFailureOfTheFirstSampleIsReported) {
  for (int round = 0; round < 20; ++round) {
    EXPECT_THAT(
        [] {
          for_each_sample(100, {.workers = 4}, [] {
            return [](std::uint64_t sample) {
              if (sample >= 3) throw DataError("sample " + std::to_string(sample));
            };
          });
        },
        testing::ThrowsMessage<DataError>("sample 3"));
  }
}

TEST(EachSample, StopsWhenAskedTo) {
  std::atomic<bool> cancel{false};
  std::atomic<std::uint64_t> done{0};
  EXPECT_FALSE(for_each_sample(UINT64_MAX, {.workers = 2, .cancel = &cancel}, [&] {
    return [&](std::uint64_t) {
      if (++done > 100) cancel = true;
    };
  }));
  EXPECT_GT(done, 100U);
}

TEST(EachSample, IgnoresSamplesThatFailAfterTheCancellation) {
  std::atomic<bool> cancel{false};
  EXPECT_FALSE(for_each_sample(1, {.workers = 1, .cancel = &cancel}, [&] {
    return [&](std::uint64_t) {
      cancel = true;
      throw IoError("interrupted");
    };
  }));
}

}  // namespace
}  // namespace precast::data
