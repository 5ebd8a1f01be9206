#include "data/jobs/write_dataset.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <span>
#include <thread>

#include "data/beton/reader.h"
#include "data/write/blob_fields.h"
#include "data/write/number_fields.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/other_threads.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;
using testing::ThrowsMessage;

WriteOptions options(int workers) {
  WriteOptions chosen;
  chosen.layout.page_bytes = kMinPageBytes;
  chosen.workers = workers;
  return chosen;
}

/// An int field and a bytes field.
std::vector<FieldPlan> small_fields() {
  return {{"number", [] { return std::make_unique<IntField>(); }},
          {"bytes", [] { return std::make_unique<BytesField>(); }}};
}

TEST(WriteDatasetRuns, RunsOfManySmallSamplesAmongLargeOnesKeepTheirOrder) {
  const test::TemporaryFolder folder;
  const auto path = folder / "out.beton";
  constexpr std::uint64_t kMany = 5000;
  const auto bytes_of = [](std::uint64_t i) {
    return std::string(i % 1000 == 999 ? 700'000 : i % 50, static_cast<char>(i));
  };
  const auto provider = [&](std::uint64_t i) {
    if (i % 777 == 5) throw DataError("damaged");
    return Sample{"row", {static_cast<std::int64_t>(i), bytes_of(i)}};
  };
  std::vector<std::byte> expected;
  for (const int workers : {1, 2, 5}) {
    WriteOptions chosen = options(workers);
    chosen.on_corrupt = CorruptPolicy::skip;
    std::uint64_t calls = 0;
    chosen.on_progress = [&](std::uint64_t samples, std::uint64_t) { EXPECT_EQ(samples, ++calls); };
    const WriteSummary summary = write_dataset(path, small_fields(), kMany, provider, chosen);
    EXPECT_EQ(calls, kMany);
    ASSERT_EQ(summary.skipped.size(), 7U);
    for (std::uint64_t i = 0; i < 7; ++i) EXPECT_EQ(summary.skipped[i].index, i * 777 + 5);
    const std::vector<std::byte> file = test::read_bytes(path);
    if (workers == 1) expected = file;
    EXPECT_TRUE(file == expected) << workers;
  }
  const BetonReader reader(path);
  for (std::uint64_t position = 0, i = 0; i < kMany; ++i) {
    if (i % 777 == 5) continue;
    ASSERT_EQ(reader.integer(position, 0), static_cast<std::int64_t>(i));
    const auto blob = reader.blob(position++, 1);
    const std::string bytes = bytes_of(i);
    ASSERT_TRUE(std::ranges::equal(blob, std::as_bytes(std::span(bytes)))) << i;
  }
}

TEST(WriteDatasetRuns, IfAllSamplesAreDamagedTheFirstIsGivenByItsNumberAndItsName) {
  const test::TemporaryFolder folder;
  WriteOptions chosen = options(2);
  chosen.on_corrupt = CorruptPolicy::skip;
  const auto write = [&](const SampleProvider& provider) {
    return [&chosen, &folder, provider] {
      (void)write_dataset(folder / "out.beton", small_fields(), 7, provider, chosen);
    };
  };
  const auto nameless = [](std::uint64_t i) -> Sample { throw DataError(fmt::format("row{}", i)); };
  EXPECT_THAT(write(nameless), ThrowsMessage<DataError>(Names(7, "sample 0", "row0")));
  const auto named = [](std::uint64_t i) {
    return Sample{fmt::format("a{}.txt", i), {std::string("text"), std::string("text")}};
  };
  EXPECT_THAT(write(named), ThrowsMessage<DataError>(Names(7, "sample 0", "a0.txt")));
}

TEST(WriteDatasetRuns, ThreadsDoNotMeetForEachSmallSample) {
  const test::TemporaryFolder folder;
  const auto switches = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
  };
  constexpr std::int64_t kMany = 40'000;
  const auto provider = [](std::uint64_t i) {
    return Sample{"", {static_cast<std::int64_t>(i), std::string("text")}};
  };
  const auto before = switches();
  (void)write_dataset(folder / "out.beton", small_fields(), kMany, provider, options(2));
  EXPECT_LT(switches() - before, kMany / 8);
}

TEST(WriteDatasetRuns, SamplesThatGrowAreNotHeldByTheRun) {
  const test::TemporaryFolder folder;
  constexpr std::uint64_t kSmall = 2000;
  constexpr std::uint64_t kAll = 2300;
  constexpr std::size_t kLarge = std::size_t{1} << 19;
  constexpr int kWorkers = 4;
  std::atomic<std::uint64_t> given = 0;
  const auto provider = [&](std::uint64_t i) {
    if (i >= kSmall) {
      given += kLarge;
      // Lets all workers begin a long run of samples before one of them notices that its samples
      // are large.
      for (int turn = 0; turn < 100; ++turn) std::this_thread::yield();
    }
    return Sample{"", {static_cast<std::int64_t>(i), std::string(i < kSmall ? 1 : kLarge, 'x')}};
  };
  WriteOptions chosen = options(kWorkers);
  chosen.on_progress = [&](std::uint64_t samples, std::uint64_t) {
    if (samples != kSmall + 1) return;
    test::wait_until_other_threads_sleep();  // the workers have reached their limit
    EXPECT_LE(given - kLarge, 4 * kWorkers * ((std::uint64_t{1} << 20) + kLarge));
  };
  (void)write_dataset(folder / "out.beton", small_fields(), kAll, provider, chosen);
}

}  // namespace
}  // namespace precast::data
