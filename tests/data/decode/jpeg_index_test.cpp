#include "data/decode/jpeg_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "data/decode/index_share.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using ::testing::ElementsAre;

constexpr char kFingerprint[] = "0123456789abcdef";
constexpr std::uint64_t kNoLimit = UINT64_MAX;

TEST(ScanCheckpointTest, PacksAndUnpacks) {
  for (const ScanCheckpoint point :
       {ScanCheckpoint{0, {0, 0, 0}}, ScanCheckpoint{(1U << 28) - 1, {2047, -2048, 2047}},
        ScanCheckpoint{12345, {-1, 1, -700}}}) {
    const auto packed = point.packed();
    ASSERT_TRUE(packed.has_value());
    const ScanCheckpoint again = ScanCheckpoint::unpacked(*packed);
    EXPECT_EQ(again.bit, point.bit);
    EXPECT_EQ(again.dc, point.dc);
  }
}

TEST(ScanCheckpointTest, WhatDoesNotFitIsNotPacked) {
  EXPECT_FALSE((ScanCheckpoint{1U << 28, {0, 0, 0}}.packed()));
  EXPECT_FALSE((ScanCheckpoint{0, {2048, 0, 0}}.packed()));
  EXPECT_FALSE((ScanCheckpoint{0, {0, 0, -2049}}.packed()));
}

TEST(JpegIndexTest, KeepsTheFirstThatIsAdded) {
  JpegIndex index(3, 8, kNoLimit);
  EXPECT_TRUE(index.accepts(1));
  EXPECT_TRUE(index.find(1).empty());
  index.add(1, std::array<std::uint64_t, 2>{7, 9});
  index.add(1, std::array<std::uint64_t, 1>{5});
  index.add(2, {});
  EXPECT_THAT(index.find(1).points, ElementsAre(7, 9));
  EXPECT_EQ(index.find(1).interval, 8U);
  EXPECT_FALSE(index.accepts(1));
  EXPECT_FALSE(index.accepts(2)) << "sample 2 is known to have no checkpoints";
  EXPECT_TRUE(index.find(2).empty());
  EXPECT_TRUE(index.accepts(0));
}

TEST(JpegIndexTest, StopsGrowingAtItsLimit) {
  JpegIndex index(1000, 8, /*max_bytes=*/1000);
  const std::vector<std::uint64_t> points(99, 1);
  index.add(0, points);
  EXPECT_EQ(index.find(0).points.size(), points.size());
  EXPECT_TRUE(index.accepts(1));
  index.add(1, points);
  EXPECT_TRUE(index.find(1).empty());
  EXPECT_FALSE(index.accepts(2)) << "the index has reached its limit";
}

TEST(JpegIndexTest, TakesNoMoreMemoryThanItSaysWhateverTheSizesOfItsEntries) {
  constexpr std::uint64_t kSamples = 400;
  constexpr std::uint64_t kMaxBytes = std::uint64_t{4} << 20;
  // A block has room for 65,536 numbers: 40,000 leave more than a third of it unused, and 70,000 do
  // not fit in a block.
  for (const std::vector<std::size_t>& sizes : std::vector<std::vector<std::size_t>>{
           {99}, {40'000}, {65'535}, {70'000}, {1, 65'535}, {40'000, 99, 70'000, 30'000}}) {
    JpegIndex index(kSamples, 8, kMaxBytes);
    std::uint64_t added = 0;
    for (std::uint64_t s = 0; s < kSamples; ++s) {
      const std::vector<std::uint64_t> points(sizes[s % sizes.size()], s);
      index.add(s, points);
      added += index.find(s).points.size() == points.size() ? 1 : 0;
      ASSERT_LE(index.bytes(), index.max_memory_bytes())
          << testing::PrintToString(sizes) << ' ' << s;
    }
    EXPECT_GE(added, 4U) << testing::PrintToString(sizes);
    EXPECT_LE(index.max_memory_bytes(), kMaxBytes + kSamples * 8 + (std::uint64_t{1} << 19));
  }
}

TEST(JpegIndexTest, FilesShareALimitThatIsBelowTheirNumberOfSamples) {
  const auto index_of = [](std::uint64_t samples) {
    return std::make_shared<JpegIndex>(samples, 8, kNoLimit);
  };
  JpegIndex index(std::vector<std::shared_ptr<JpegIndex>>{index_of(3000), index_of(1000)});
  index.limit(1600);
  // Each checkpoint takes 8 bytes, and so does their number: 99 checkpoints take 800 of the 1,200
  // bytes of the first file, and 49 take all 400 bytes of the second file.
  index.add(0, std::vector<std::uint64_t>(99, 1));
  index.add(3000, std::vector<std::uint64_t>(49, 1));
  EXPECT_EQ(index.find(0).points.size(), 99U);
  EXPECT_EQ(index.find(3000).points.size(), 49U);
  index.add(3001, {});
  EXPECT_FALSE(index.accepts(3002));
  EXPECT_TRUE(index.accepts(1));
}

TEST(IndexShareTest, IsRoundedDownOnlyOnce) {
  EXPECT_EQ(share_of(10, 1, 3), 3U);
  EXPECT_EQ(share_of(10, 2, 3), 6U);
  EXPECT_EQ(share_of(100, 50, 1000), 5U);
  EXPECT_EQ(share_of(0, 1, 3), 0U);
  EXPECT_EQ(share_of(kNoLimit, 7, 7), kNoLimit);
  EXPECT_EQ(share_of(kNoLimit, 1, 2), kNoLimit / 2);
}

TEST(JpegIndexTest, ThreadsMayAddAndFindAtOnce) {
  constexpr std::uint64_t kSamples = 2000;
  JpegIndex index(kSamples, 8, kNoLimit);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (std::uint64_t s = 0; s < kSamples; ++s) {
          const std::vector<std::uint64_t> points(1 + s % 100, s);
          if (index.accepts(s)) index.add(s, points);
          const JpegCheckpoints found = index.find(s);
          EXPECT_TRUE(std::ranges::equal(found.points, points)) << s;
        }
      });
    }
  }
}

TEST(JpegIndexTest, AnIndexReadFromAFileDoesNotGrow) {
  const test::TemporaryFolder folder;
  const auto path = jpeg_sidecar(folder / "x.beton");
  JpegIndex index(3, 4, kNoLimit);
  index.add(0, std::array<std::uint64_t, 3>{1, 2, 3});
  index.add(2, std::array<std::uint64_t, 1>{99});
  ASSERT_TRUE(index.write(path, kFingerprint));
  const auto file = JpegIndex::open(path, kFingerprint, 3);
  EXPECT_EQ(file->interval(), 4U);
  EXPECT_EQ(file->samples(), 3U);
  EXPECT_THAT(file->find(0).points, ElementsAre(1, 2, 3));
  EXPECT_TRUE(file->find(1).empty());
  EXPECT_THAT(file->find(2).points, ElementsAre(99));
  EXPECT_FALSE(file->accepts(1)) << "nothing is added to an index that is read from a file";
  EXPECT_EQ(file->bytes(), file->max_memory_bytes());
  EXPECT_GE(file->bytes(), std::filesystem::file_size(path));
}

}  // namespace
}  // namespace precast::data
