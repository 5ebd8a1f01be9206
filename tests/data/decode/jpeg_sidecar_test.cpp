#include "data/decode/jpeg_sidecar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "data/beton/layout.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;
using Bytes = std::vector<std::byte>;

constexpr char kFingerprint[] = "0123456789abcdef";
constexpr std::uint64_t kSamples = 150;
constexpr std::uint64_t kBlocks = 3;
constexpr std::size_t kInterval = 4;
/// Positions and sizes from FORMAT.md. @{
constexpr std::uint64_t kHeaderBytes = 48;
constexpr std::uint64_t kHashAt = 8, kIntervalAt = 24, kTableAt = 40;
constexpr std::uint64_t kEntryBytes = 16;
/// @}

/// The 0 to 6 checkpoints of a sample.
std::vector<std::uint64_t> points_of(std::uint64_t sample) {
  std::vector<std::uint64_t> points(sample * 5 % 7);
  for (std::size_t i = 0; i < points.size(); ++i) points[i] = sample * 1000 + i;
  return points;
}

void write_sidecar(const std::filesystem::path& path, std::uint64_t samples) {
  JpegSidecarWriter writer(path, kInterval);
  for (std::uint64_t sample = 0; sample < samples; ++sample) writer.add(points_of(sample));
  writer.complete(kFingerprint);
  writer.commit();
}

std::uint64_t number_at(const Bytes& file, std::uint64_t at) {
  return load<std::uint64_t>(file.data() + at);
}

class JpegSidecarTest : public ::testing::Test {
 protected:
  JpegSidecarTest() {
    write_sidecar(path_, kSamples);
    good_ = test::read_bytes(path_);
    table_at_ = number_at(good_, kTableAt);
  }

  [[nodiscard]] JpegSidecar open() const { return {path_, kFingerprint, kSamples}; }

  [[nodiscard]] std::uint64_t block_begin(std::uint64_t block) const {
    return block == 0 ? kHeaderBytes : block_end(block - 1);
  }
  [[nodiscard]] std::uint64_t block_end(std::uint64_t block) const {
    return number_at(good_, table_at_ + block * kEntryBytes);
  }
  [[nodiscard]] std::uint64_t block_at(std::uint64_t at) const {
    std::uint64_t block = 0;
    while (at >= block_end(block)) ++block;
    return block;
  }

  /// A sidecar in memory with changed bytes.
  struct Changed {
    std::vector<std::uint64_t> words;
    std::unique_ptr<JpegSidecar> sidecar;
    JpegSidecar* operator->() const { return sidecar.get(); }
  };
  /// Opens a copy of the valid bytes after `change` has modified it.
  [[nodiscard]] Changed changed(const std::function<void(Bytes&)>& change) const {
    Bytes bytes = good_;
    change(bytes);
    Changed opened;
    opened.words.resize((bytes.size() + 7) / 8);
    const auto memory = std::as_writable_bytes(std::span(opened.words)).first(bytes.size());
    std::ranges::copy(bytes, memory.begin());
    opened.sidecar = std::make_unique<JpegSidecar>(memory, kFingerprint, kSamples);
    return opened;
  }

  /// Recomputes all hashes, as in a crafted file, so that they do not reveal the changes.
  void correct_hashes(Bytes& bytes) const {
    for (std::uint64_t block = 0; block < kBlocks; ++block) {
      const std::span all(bytes);
      store(bytes.data() + table_at_ + block * kEntryBytes + 8,
            hash_of(all.subspan(block_begin(block), block_end(block) - block_begin(block))));
    }
    RunningHash hash;
    hash.add(std::span(bytes).subspan(2 * kHashAt, kHeaderBytes - 2 * kHashAt));
    hash.add(std::span(bytes).subspan(table_at_));
    store(bytes.data() + kHashAt, hash.value());
  }

  test::TemporaryFolder folder_;
  std::filesystem::path path_ = jpeg_sidecar(folder_ / "x.beton");
  Bytes good_;
  std::uint64_t table_at_ = 0;
};

TEST_F(JpegSidecarTest, IsReadAsWritten) {
  const JpegSidecar sidecar = open();
  EXPECT_EQ(sidecar.interval(), kInterval);
  EXPECT_EQ(sidecar.samples(), kSamples);
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    const JpegCheckpoints found = sidecar.find(sample);
    EXPECT_TRUE(std::ranges::equal(found.points, points_of(sample))) << sample;
    EXPECT_EQ(found.interval, kInterval);
  }
  EXPECT_FALSE(sidecar.damaged());
}

TEST_F(JpegSidecarTest, WholeBlocksAndNoSamplesAreFiles) {
  for (const std::uint64_t samples : {0, 1, 64, 65, 128}) {
    write_sidecar(path_, samples);
    const JpegSidecar sidecar(path_, kFingerprint, samples);
    for (std::uint64_t sample = 0; sample < samples; ++sample)
      EXPECT_TRUE(std::ranges::equal(sidecar.find(sample).points, points_of(sample))) << sample;
  }
}

TEST_F(JpegSidecarTest, OpeningReadsHeaderAndTableAndEachBlockIsReadOnce) {
  const JpegSidecar sidecar = open();
  std::uint64_t expected = kHeaderBytes + kBlocks * kEntryBytes;
  EXPECT_EQ(sidecar.verified_bytes(), expected);
  for (const std::uint64_t block : {2U, 0U, 1U}) {
    expected += block_end(block) - block_begin(block);
    for (std::uint64_t sample = 64 * block; sample < std::min(kSamples, 64 * block + 64); ++sample)
      static_cast<void>(sidecar.find(sample));
    EXPECT_EQ(sidecar.verified_bytes(), expected) << block;
  }
  EXPECT_EQ(expected, good_.size());
  // 100,000 samples: 1,563 blocks.
  write_sidecar(path_, 100'000);
  EXPECT_EQ(JpegSidecar(path_, kFingerprint, 100'000).verified_bytes(), 48U + 1563U * 16U);
  EXPECT_GT(std::filesystem::file_size(path_), 3'000'000U);
}

TEST_F(JpegSidecarTest, BelongsToOneDataset) {
  EXPECT_THROW(JpegSidecar(path_, "0123456789abcdee", kSamples), DataError);
  EXPECT_THROW(JpegSidecar(path_, kFingerprint, kSamples + 1), DataError);
}

TEST_F(JpegSidecarTest, AnotherVersionIsRefusedByName) {
  good_[7] = std::byte{'1'};
  test::write_bytes(path_, good_);
  try {
    static_cast<void>(open());
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(),
                Names(path_, "02", "got 01", "precast index " + (folder_ / "x.beton").string()));
  }
}

TEST_F(JpegSidecarTest, AnyCutIsNoticedWhenItIsOpened) {
  for (std::size_t length = 0; length < good_.size(); ++length)
    EXPECT_THROW(static_cast<void>(changed([&](Bytes& bytes) { bytes.resize(length); })), Error)
        << length;
  EXPECT_THROW(
      static_cast<void>(changed([&](Bytes& bytes) { bytes.resize(bytes.size() + kEntryBytes); })),
      DataError);
}

TEST_F(JpegSidecarTest, AnyChangedByteOfHeaderAndTableIsNoticedWhenItIsOpened) {
  for (std::size_t at = 0; at < good_.size(); ++at) {
    if (at == kHeaderBytes) at = table_at_;
    for (const int bit : {0, 4, 7}) {
      const auto flip = [&](Bytes& bytes) { bytes[at] ^= static_cast<std::byte>(1 << bit); };
      EXPECT_THROW(static_cast<void>(changed(flip)), DataError) << at;
    }
  }
}

TEST_F(JpegSidecarTest, AnyChangedByteOfABlockLeavesItsSamplesWithoutCheckpoints) {
  for (std::size_t at = kHeaderBytes; at < table_at_; ++at) {
    const auto sidecar = changed([&](Bytes& bytes) { bytes[at] ^= std::byte{0x10}; });
    EXPECT_FALSE(sidecar->damaged()) << at;
    const std::uint64_t damaged = block_at(at);
    for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
      const auto expected =
          sample / 64 == damaged ? std::vector<std::uint64_t>() : points_of(sample);
      ASSERT_TRUE(std::ranges::equal(sidecar->find(sample).points, expected)) << at;
    }
    EXPECT_TRUE(sidecar->damaged()) << at;
  }
}

TEST_F(JpegSidecarTest, ABlockWhoseNumbersDoNotFitIsDamaged) {
  const std::uint64_t begin = block_begin(1);
  const std::uint64_t last_end = begin + 8 * 63;
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> cases = {
      {begin, UINT64_MAX},
      {begin, number_at(good_, last_end) + 1},
      {begin + 8 * 5, 0},
      {begin + 8 * 5, std::uint64_t{1} << 61},
      {last_end, number_at(good_, last_end) + 1},
      {last_end, number_at(good_, last_end) - 1},
      {last_end, UINT64_MAX}};
  for (const auto& [at, number] : cases) {
    const auto sidecar = changed([&](Bytes& bytes) {
      store(bytes.data() + at, number);
      correct_hashes(bytes);
    });
    for (std::uint64_t sample = 64; sample < 128; ++sample)
      EXPECT_TRUE(sidecar->find(sample).empty()) << at << " " << number;
    EXPECT_FALSE(sidecar->find(1).empty());
    EXPECT_TRUE(sidecar->damaged());
  }
}

TEST_F(JpegSidecarTest, NumbersOfHeaderAndTableThatDoNotFitAreRefused) {
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> cases = {
      {kIntervalAt, 0},
      {kIntervalAt, kMaxCheckpointInterval + 1},
      {kTableAt, table_at_ + 8},
      {kTableAt, table_at_ - 16},
      {kTableAt, UINT64_MAX},
      {table_at_, 0},
      {table_at_, kHeaderBytes + 8 * 64 - 8},
      {table_at_, table_at_ + 8},
      {table_at_, block_end(0) + 1},
      {table_at_ + kEntryBytes, block_end(0)},
      {table_at_ + kEntryBytes, UINT64_MAX - 7},
      {table_at_ + 2 * kEntryBytes, table_at_ + 8}};
  for (const auto& [at, number] : cases) {
    const auto change = [&](Bytes& bytes) {
      store(bytes.data() + at, number);
      RunningHash hash;
      hash.add(std::span(bytes).subspan(2 * kHashAt, kHeaderBytes - 2 * kHashAt));
      hash.add(std::span(bytes).subspan(table_at_));
      store(bytes.data() + kHashAt, hash.value());
    };
    EXPECT_THROW(static_cast<void>(changed(change)), DataError) << at << " " << number;
  }
}

TEST_F(JpegSidecarTest, ThreadsThatMeetADamagedBlockWarnOnce) {
  Bytes bad = good_;
  for (const std::uint64_t block : {0U, 2U}) bad[block_begin(block)] ^= std::byte{1};
  test::write_bytes(path_, bad);
  const JpegSidecar sidecar = open();
  testing::internal::CaptureStderr();
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 0; i < 2 * kSamples; ++i) {
          const std::uint64_t sample = (i * 7 + t * 19) % kSamples;
          const auto expected = sample / 64 == 1 ? points_of(sample) : std::vector<std::uint64_t>();
          EXPECT_TRUE(std::ranges::equal(sidecar.find(sample).points, expected)) << sample;
        }
      });
    }
  }
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_THAT(warning, Names(path_, "precast index " + (folder_ / "x.beton").string()));
  EXPECT_EQ(std::ranges::count(warning, '\n'), 1) << warning;
}

TEST_F(JpegSidecarTest, OnlyAnIndexIsRemovedWithItsDataset) {
  remove_jpeg_sidecar(folder_ / "x.beton");
  EXPECT_FALSE(std::filesystem::exists(path_));
  remove_jpeg_sidecar(folder_ / "x.beton");
  test::write_bytes(path_, Bytes(100, std::byte{'P'}));
  remove_jpeg_sidecar(folder_ / "x.beton");
  EXPECT_TRUE(std::filesystem::exists(path_));
  // An index of an older format version is removed, too.
  good_[7] = std::byte{'1'};
  test::write_bytes(path_, good_);
  remove_jpeg_sidecar(folder_ / "x.beton");
  EXPECT_FALSE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace precast::data
