#include "data/decode/jpeg_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;
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
  EXPECT_TRUE(index.wants(1));
  EXPECT_TRUE(index.find(1).empty());
  index.add(1, std::array<std::uint64_t, 2>{7, 9});
  index.add(1, std::array<std::uint64_t, 1>{5});
  index.add(2, {});
  EXPECT_THAT(index.find(1).points, ElementsAre(7, 9));
  EXPECT_EQ(index.find(1).interval, 8U);
  EXPECT_FALSE(index.wants(1));
  EXPECT_FALSE(index.wants(2)) << "known to have none";
  EXPECT_TRUE(index.find(2).empty());
  EXPECT_TRUE(index.wants(0));
}

TEST(JpegIndexTest, StopsGrowingAtItsLimit) {
  JpegIndex index(1000, 8, /*max_bytes=*/1000);
  const std::vector<std::uint64_t> points(99, 1);
  index.add(0, points);
  EXPECT_EQ(index.find(0).points.size(), points.size());
  EXPECT_TRUE(index.wants(1));
  index.add(1, points);
  EXPECT_TRUE(index.find(1).empty());
  EXPECT_FALSE(index.wants(2)) << "full";
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
          if (index.wants(s)) index.add(s, points);
          const JpegCheckpoints found = index.find(s);
          EXPECT_TRUE(std::ranges::equal(found.points, points)) << s;
        }
      });
    }
  }
}

class JpegIndexFileTest : public ::testing::Test {
 protected:
  JpegIndexFileTest() {
    JpegIndex index(3, 4, kNoLimit);
    index.add(0, std::array<std::uint64_t, 3>{1, 2, 3});
    index.add(2, std::array<std::uint64_t, 1>{99});
    index.write(path_, kFingerprint);
  }

  void expect_refused(std::size_t bytes) const {
    try {
      static_cast<void>(JpegIndex::open(path_, kFingerprint, 3));
      FAIL();
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(),
                  Names(path_, bytes, "precast index " + (folder_ / "x.beton").string()));
    }
  }

  test::TemporaryFolder folder_;
  std::filesystem::path path_ = JpegIndex::sidecar(folder_ / "x.beton");
};

TEST_F(JpegIndexFileTest, IsReadAsWritten) {
  const auto index = JpegIndex::open(path_, kFingerprint, 3);
  EXPECT_EQ(index->interval(), 4U);
  EXPECT_THAT(index->find(0).points, ElementsAre(1, 2, 3));
  EXPECT_TRUE(index->find(1).empty());
  EXPECT_THAT(index->find(2).points, ElementsAre(99));
  EXPECT_FALSE(index->wants(1)) << "a file does not grow";
}

TEST_F(JpegIndexFileTest, BelongsToOneDataset) {
  EXPECT_THROW(static_cast<void>(JpegIndex::open(path_, "0123456789abcdee", 3)), DataError);
  EXPECT_THROW(static_cast<void>(JpegIndex::open(path_, kFingerprint, 4)), DataError);
}

TEST_F(JpegIndexFileTest, AnyCutOrChangedByteIsNoticed) {
  const std::vector<std::byte> good = read_file(path_);
  for (std::size_t length = 0; length < good.size(); ++length) {
    test::write_bytes(
        path_, std::vector(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length)));
    EXPECT_THROW(static_cast<void>(JpegIndex::open(path_, kFingerprint, 3)), Error) << length;
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::vector<std::byte> bad = good;
    bad[at] ^= std::byte{0x10};
    test::write_bytes(path_, bad);
    EXPECT_THROW(static_cast<void>(JpegIndex::open(path_, kFingerprint, 3)), DataError) << at;
  }
  test::write_bytes(path_, std::vector<std::byte>(16));
  expect_refused(16);
}

}  // namespace
}  // namespace precast::data
