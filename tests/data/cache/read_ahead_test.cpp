#include "data/cache/read_ahead.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "framework/core/file.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

constexpr std::int64_t kSamples = 400;
/// The distance between the beginnings of two samples. It is larger than a sample, and larger than
/// the range that the kernel reads for one byte.
constexpr std::uint64_t kStride = std::uint64_t{64} << 10;
constexpr std::uint64_t kSampleBytes = 12'000;

/// A file of samples with gaps between them; if its file system is on a disk, it is not in the page
/// cache.
class ReadAheadTest : public ::testing::Test {
 protected:
  ReadAheadTest() {
    write_file(path_, std::string(kSamples * kStride, 'x'));
    evict_from_page_cache();
  }
  /// Drops the file from the page cache. Retries, because the kernel keeps memory pages a little
  /// longer while they are in a per-CPU list.
  void evict_from_page_cache() {
    const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    ::fsync(fd);
    constexpr std::size_t kBytes = kSamples * kStride;
    void* const mapped = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    std::vector<unsigned char> pages(kBytes / static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
    for (int i = 0; i < 200 && !evicted_; ++i) {
      if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
      ASSERT_EQ(::mincore(mapped, kBytes, pages.data()), 0);
      evicted_ = std::ranges::none_of(pages, [](unsigned char page) { return (page & 1) != 0; });
    }
    ::munmap(mapped, kBytes);
    ::close(fd);
  }
  static FileRange range_of(std::int64_t sample) {
    const std::uint64_t begin = static_cast<std::uint64_t>(sample) * kStride;
    return {begin, begin + kSampleBytes};
  }
  static std::vector<FileRange> ranges_of(std::int64_t sample) { return {range_of(sample)}; }
  /// Polls, because the kernel does not report when it has finished reading.
  static bool cached_soon(const MappedFile& file, std::uint64_t offset) {
    for (int i = 0; i < 3000 && !file.cached(offset); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return file.cached(offset);
  }

  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "samples";
  /// Whether no part of the file is in the page cache. File systems in memory never evict it.
  bool evicted_ = false;
};

TEST_F(ReadAheadTest, BringsTheNextSamplesAndNothingElse) {
  const MappedFile file(path_);
  if (!evicted_) GTEST_SKIP() << "this file system keeps all files in memory";
  ReadAhead ahead(file, ranges_of, 10, kSamples);
  ahead.advance_to(10);
  EXPECT_EQ(ahead.requested(), ReadAhead::kSamplesAhead);
  for (std::int64_t i = 10; i < 10 + ReadAhead::kSamplesAhead; ++i) {
    EXPECT_TRUE(cached_soon(file, range_of(i).begin)) << i;
    EXPECT_TRUE(cached_soon(file, range_of(i).end - 1)) << i;
    EXPECT_FALSE(file.cached(range_of(i).end + kStride / 2)) << i;
  }
  EXPECT_FALSE(file.cached(range_of(0).begin));
  EXPECT_FALSE(file.cached(range_of(11 + ReadAhead::kSamplesAhead).begin));
}

TEST_F(ReadAheadTest, AsksForEachSampleOnceWhateverTheThreads) {
  const MappedFile file(path_);
  if (!evicted_) GTEST_SKIP() << "this file system keeps all files in memory";
  ReadAhead ahead(file, ranges_of, 0, kSamples);
  std::atomic<std::int64_t> next{0};
  {
    std::vector<std::jthread> workers;
    for (int w = 0; w < 3; ++w)
      workers.emplace_back([&] {
        for (std::int64_t i = next++; i < kSamples; i = next++) ahead.advance_to(i);
      });
  }
  EXPECT_EQ(ahead.requested(), kSamples);
}

TEST_F(ReadAheadTest, AsksForNothingWhereTheFileIsCached) {
  const MappedFile file(path_);
  for (const std::byte byte : file.bytes()) ASSERT_EQ(byte, std::byte{'x'});
  if (!file.cached(0)) GTEST_SKIP() << "this file system does not report which pages are cached";
  ReadAhead ahead(file, ranges_of, 0, kSamples);
  for (std::int64_t i = 0; i < kSamples; ++i) ahead.advance_to(i);
  EXPECT_EQ(ahead.requested(), 0);
}

TEST_F(ReadAheadTest, FromTheFirstMissingSampleOnAsksForAllOfThem) {
  const MappedFile file(path_);
  if (!evicted_) GTEST_SKIP() << "this file system keeps all files in memory";
  // The kernel also reads bytes after the one that is accessed.
  for (std::int64_t i = 0; i < 100; ++i) ASSERT_EQ(file.bytes()[range_of(i).begin], std::byte{'x'});
  ReadAhead ahead(file, ranges_of, 0, kSamples);
  for (std::int64_t i = 0; i < kSamples; ++i) ahead.advance_to(i);
  EXPECT_GT(ahead.requested(), 0);
  EXPECT_TRUE(cached_soon(file, range_of(kSamples - 1).begin));
}

TEST_F(ReadAheadTest, AStretchThatLeavesTheFileIsCutOff) {
  const MappedFile file(path_);
  file.will_need(file.bytes().size() - 10, UINT64_MAX / 2);
  file.will_need(UINT64_MAX / 2, 10);
  EXPECT_FALSE(file.cached(file.bytes().size()));
}

TEST_F(ReadAheadTest, SamplesWithoutBytesNeedNothing) {
  const MappedFile file(path_);
  ReadAhead ahead(
      file, [](std::int64_t) { return std::vector<FileRange>{}; }, 0, kSamples);
  for (std::int64_t i = 0; i < kSamples; ++i) ahead.advance_to(i);
  EXPECT_EQ(ahead.requested(), 0);
}

}  // namespace
}  // namespace precast::data
