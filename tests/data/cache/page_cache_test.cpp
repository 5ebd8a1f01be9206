#include "data/cache/page_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/rng.h"
#include "tests/support/few_threads.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
constexpr std::uint64_t kPage = 2 * kMebibyte;
constexpr std::uint64_t kPages = 12;
constexpr std::uint64_t kSampleBytes = kMebibyte;

std::uint64_t content(std::uint64_t offset) {
  return offset * 0x9E3779B97F4A7C15U;
}

/// A file of 12 pages of 2 MiB. Each 8 bytes contain a number that depends on their offset.
class PageCacheTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TemporaryFolder;
    std::ofstream out(*folder_ / "x", std::ios::binary);
    std::vector<std::uint64_t> page(kPage / 8);
    for (std::uint64_t p = 0; p < kPages; ++p) {
      for (std::uint64_t i = 0; i < page.size(); ++i) page[i] = content(p * kPage + i * 8);
      out.write(reinterpret_cast<const char*>(page.data()), kPage);
    }
  }
  static void TearDownTestSuite() { delete folder_; }

  /// The ranges of half pages, in the given order.
  static std::vector<FileRange> halves(const std::vector<std::uint64_t>& order) {
    std::vector<FileRange> ranges;
    for (const std::uint64_t half : order)
      ranges.push_back({half * kSampleBytes, (half + 1) * kSampleBytes});
    return ranges;
  }
  /// Uses all samples in several threads. @return the number of wrong values.
  static int use_all(PageCache& cache, const std::vector<FileRange>& ranges, int threads) {
    std::atomic<std::size_t> next{0};
    std::atomic<int> wrong{0};
    std::vector<std::jthread> workers;
    for (int t = 0; t < threads; ++t) {
      workers.emplace_back([&] {
        for (std::size_t i = next++; i < ranges.size(); i = next++) {
          const PageCache::Use use(cache, i);
          const FileWindow& window = use.window();
          for (std::uint64_t at = ranges[i].begin; at < ranges[i].end; at += 4096) {
            std::uint64_t found = 0;
            std::memcpy(&found, window.bytes.data() + (at - window.offset), sizeof found);
            if (found != content(at)) ++wrong;
          }
        }
      });
    }
    workers.clear();
    return wrong;
  }
  static ExtentPlan plan(const PageCache& cache, const std::vector<FileRange>& ranges) {
    return plan_extents(ranges, kPage, kPages * kPage, cache.plan_capacity_bytes(kPage));
  }

  static test::TemporaryFolder* folder_;
};

test::TemporaryFolder* PageCacheTest::folder_ = nullptr;

TEST_F(PageCacheTest, GivesTheRightBytesUnderEveryBudgetAndOrder) {
  const DiskFile file(*folder_ / "x");
  for (const std::uint64_t budget : {2, 4, 6, 16, 64}) {
    PageCache cache(file, {.budget_bytes = budget * kMebibyte, .readers = 3});
    for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
      const auto ranges = halves(random_permutation(2 * kPages, 3, epoch));
      for (const int threads : {1, 4}) {
        cache.begin(plan(cache, ranges));
        EXPECT_EQ(use_all(cache, ranges, threads), 0) << budget;
        cache.end();
      }
    }
    EXPECT_LE(cache.peak_bytes(), budget * kMebibyte);
    EXPECT_GT(cache.peak_bytes(), 0U);
  }
}

TEST_F(PageCacheTest, AFileThatFitsIsReadOnceNotOnceAnEpoch) {
  const DiskFile file(*folder_ / "x");
  PageCache cache(file, {.budget_bytes = 64 * kMebibyte});
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
    const auto ranges = halves(random_permutation(2 * kPages, 3, epoch));
    cache.begin(plan(cache, ranges));
    EXPECT_EQ(use_all(cache, ranges, 2), 0);
    cache.end();
    EXPECT_EQ(cache.bytes_read(), kPages * kPage);
  }
}

TEST_F(PageCacheTest, WhatWasUsedStaysAsLongAsThereIsRoom) {
  const DiskFile file(*folder_ / "x");
  PageCache cache(file, {.budget_bytes = 8 * kPage, .readers = 1});
  for (int epoch = 0; epoch < 2; ++epoch) {
    // Each pass uses a sample of another page. The second epoch reads nothing.
    for (const std::uint64_t half : {0, 2, 4, 6, 8}) {
      const auto ranges = halves({half});
      cache.begin(plan(cache, ranges));
      EXPECT_EQ(use_all(cache, ranges, 1), 0);
      cache.end();
    }
    EXPECT_EQ(cache.bytes_read(), 5 * kPage);
  }
}

TEST_F(PageCacheTest, ReadsAheadWithoutBeingAsked) {
  const DiskFile file(*folder_ / "x");
  PageCache cache(file, {.budget_bytes = 4 * kPage});
  const auto ranges = halves({0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  cache.begin(plan(cache, ranges));
  while (cache.bytes_read() < 4 * kPage) std::this_thread::yield();
  EXPECT_EQ(cache.waits(), 0U);
  EXPECT_EQ(cache.peak_bytes(), 4 * kPage) << "read-ahead must stop at the budget";
}

TEST_F(PageCacheTest, EndsInTheMiddleOfAPassAndBeginsAnother) {
  const DiskFile file(*folder_ / "x");
  PageCache cache(file, {.budget_bytes = 2 * kPage, .readers = 2});
  const auto ranges = halves(random_permutation(2 * kPages, 3, 0));
  for (int cycle = 0; cycle < 100; ++cycle) {
    cache.begin(plan(cache, ranges));
    std::jthread worker([&] {
      for (std::size_t i = 0; i < ranges.size(); ++i) {
        const PageCache::Use use(cache, i);
        if (use.window().bytes.empty()) return;
      }
    });
    if (cycle % 3 > 0) std::this_thread::sleep_for(std::chrono::microseconds(cycle * 10));
    cache.interrupt();
    worker.join();
    cache.end();
  }
  cache.begin(plan(cache, ranges));
  EXPECT_EQ(use_all(cache, ranges, 2), 0);
}

TEST_F(PageCacheTest, AFailedReadReachesEveryUserOfThatReadAndNoOther) {
  const DiskFile file(*folder_ / "x",
                      [](int fd, void* to, std::size_t bytes, std::int64_t at) -> std::ptrdiff_t {
                        if (at < static_cast<std::int64_t>(2 * kPage))
                          return ::pread(fd, to, bytes, at);
                        errno = EIO;
                        return -1;
                      });
  PageCache cache(file, {.budget_bytes = 8 * kPage});
  const auto ranges = halves({0, 4, 1, 5, 2});
  cache.begin(plan(cache, ranges));
  for (const std::size_t good : {0, 2, 4})
    EXPECT_FALSE(PageCache::Use(cache, good).window().bytes.empty());
  for (const std::size_t bad : {1, 3}) {
    try {
      const PageCache::Use use(cache, bad);
      FAIL();
    } catch (const IoError& error) {
      EXPECT_THAT(error.what(), Names("byte 4194304", *folder_ / "x", std::strerror(EIO)));
    }
  }
}

TEST_F(PageCacheTest, FailedReadsGiveTheirMemoryBack) {
  const DiskFile file(*folder_ / "x", [](int, void*, std::size_t, std::int64_t) -> std::ptrdiff_t {
    errno = EIO;
    return -1;
  });
  // Requests 6 MiB with a budget of 4 MiB.
  PageCache cache(file, {.budget_bytes = 2 * kPage});
  const auto ranges = halves({0, 1, 2, 3, 4, 5});
  cache.begin(plan(cache, ranges));
  for (std::size_t i = 0; i < ranges.size(); ++i)
    EXPECT_THROW(PageCache::Use(cache, i), IoError) << i;
}

TEST_F(PageCacheTest, ABudgetBelowOneReadSaysWhatItNeeds) {
  const DiskFile file(*folder_ / "x");
  // The second sample spans two pages and is the largest read.
  const std::vector<FileRange> ranges = {{0, kMebibyte}, {kMebibyte, 4 * kMebibyte}};
  PageCache cache(file, {.budget_bytes = kMebibyte / 2});
  EXPECT_THAT([&] { cache.begin(plan(cache, ranges)); },
              testing::ThrowsMessage<ConfigError>(Names("data.cache_mb", "3 MiB", *folder_ / "x")));
  PageCache sufficient(file, {.budget_bytes = 3 * kMebibyte});
  sufficient.begin(plan(sufficient, ranges));
  EXPECT_EQ(use_all(sufficient, ranges, 1), 0);
}

TEST_F(PageCacheTest, AReaderThatCannotBeStartedIsNumbered) {
  if (!test::kAddressesCanBeLimited)
    GTEST_SKIP() << "the address space cannot be limited under sanitizers";
  const DiskFile file(*folder_ / "x");
  const std::string message = test::device_error_of_few_threads([&] {
    PageCache cache(file, {.budget_bytes = 2 * kPage, .readers = test::kTooManyThreads});
    cache.begin(plan(cache, halves({0, 1})));
  });
  EXPECT_THAT(message, Names("loader", test::kTooManyThreads, std::strerror(EAGAIN)));
  EXPECT_THAT(message, testing::Not(Names("reader 1")));
}

TEST_F(PageCacheTest, DirectReadsGiveTheSameBytes) {
  DiskFile file(*folder_ / "x");
  try {
    file.enable_direct_io();
  } catch (const IoError&) {
    GTEST_SKIP() << "this file system does not support O_DIRECT";
  }
  PageCache cache(file, {.budget_bytes = 6 * kPage});
  auto ranges = halves(random_permutation(2 * kPages, 3, 0));
  ranges.push_back({kPage - 4096 + 8, kPage + 4096 * 3 + 8});  // unaligned, across pages
  ranges.back().begin -= 8;
  cache.begin(plan(cache, ranges));
  EXPECT_EQ(use_all(cache, ranges, 2), 0);
}

}  // namespace
}  // namespace precast::data
