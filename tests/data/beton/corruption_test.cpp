// Changes each byte of the header, the field descriptors, the first and last records, and the
// tables, and cuts the file at each of these bytes. The reader must not crash, hang or read outside
// the file; with checksums, it must reject every change that has an effect. Then damages JPEGs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <random>

#include "data/beton/layout.h"
#include "data/beton/reader.h"
#include "data/decode/jpeg_decoder.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/beton/small_pages.h"

namespace precast::data {
namespace {

using test::golden_beton;
using test::kSmallPages;

/// A half-open range of bytes.
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// The header, the field descriptors, the first and last 64 records, and everything after the
/// pages.
std::vector<ByteRange> metadata_ranges(const BetonReader& reader) {
  constexpr std::uint64_t kRecords = 64;
  std::vector<FieldType> types;
  for (const FieldInfo& field : reader.fields()) types.push_back(field.type);
  const std::uint64_t record = record_layout(types).bytes;
  const std::uint64_t begin = kHeaderBytes + types.size() * kFieldBytes;
  const std::uint64_t end = begin + reader.size() * record;
  const std::uint64_t head = begin + std::min(kRecords, reader.size()) * record;
  const std::uint64_t tail = end - std::min(kRecords, reader.size()) * record;
  const bool sums = !reader.sums().empty();
  const std::uint64_t values =
      std::ranges::count_if(types, has_blob) * static_cast<std::int64_t>(reader.size());
  const std::uint64_t sums_at = reader.header().table_offset -
                                (sums ? sums_bytes(1, values, reader.sums().info().size()) : 0);
  return {{0, head}, {std::max(head, tail), end}, {sums_at, reader.bytes().size()}};
}

/// Whether both files have the same samples, with large values at the same positions.
bool same_data(const BetonReader& a, const BetonReader& b) {
  if (a.size() != b.size() || a.fields().size() != b.fields().size()) return false;
  for (std::size_t i = 0; i < a.fields().size(); ++i) {
    const FieldInfo& one = a.fields()[i];
    const FieldInfo& other = b.fields()[i];
    if (one.name != other.name || one.type != other.type || one.dtype != other.dtype ||
        one.shape != other.shape)
      return false;
    for (std::uint64_t sample = 0; sample < a.size(); ++sample) {
      if (one.type == FieldType::integer) {
        if (a.integer(sample, i) != b.integer(sample, i)) return false;
      } else if (one.type == FieldType::floating) {
        if (a.floating(sample, i) != b.floating(sample, i)) return false;
      } else if (a.blob_bytes(sample, i) != b.blob_bytes(sample, i) ||
                 (a.blob_bytes(sample, i) > 0 &&
                  a.blob_offset(sample, i) != b.blob_offset(sample, i))) {
        return false;
      }
    }
  }
  return true;
}

/// Reads both ends of every large value, so that a sanitizer detects a wrong pointer.
void touch_everything(const BetonReader& reader) {
  unsigned sum = 0;
  for (std::uint64_t sample = 0; sample < reader.size(); ++sample) {
    for (std::size_t i = 0; i < reader.fields().size(); ++i) {
      if (!has_blob(reader.fields()[i].type)) continue;
      const auto blob = reader.blob(sample, i);
      if (blob.empty()) continue;
      ASSERT_GE(blob.data(), reader.bytes().data());
      ASSERT_LE(blob.data() + blob.size(), reader.bytes().data() + reader.bytes().size());
      sum += std::to_integer<unsigned>(blob.front()) + std::to_integer<unsigned>(blob.back());
      if (reader.fields()[i].type != FieldType::image) continue;
      const ImageRecord image = reader.image(sample, i);
      if (image.mode == ImageMode::raw) {
        ASSERT_EQ(blob.size(), static_cast<std::size_t>(image.width * image.height) * 3);
      }
    }
  }
  static_cast<void>(sum);
}

enum class ReadResult { refused, same, changed };

ReadResult read(std::span<const std::byte> bytes, const BetonReader& original) {
  try {
    const BetonReader reader(bytes, "damaged.beton", kSmallPages);
    touch_everything(reader);
    return same_data(reader, original) ? ReadResult::same : ReadResult::changed;
  } catch (const DataError&) {
    return ReadResult::refused;
  }
}

/// Damaged values for a byte: five fixed values, and the original with each bit flipped.
std::vector<std::byte> corrupted_values(std::byte original) {
  std::vector<std::byte> all;
  for (const unsigned value : {0x00U, 0x01U, 0x7FU, 0x80U, 0xFFU})
    all.push_back(static_cast<std::byte>(value));
  for (unsigned bit = 0; bit < 8; ++bit)
    all.push_back(original ^ static_cast<std::byte>(1U << bit));
  std::erase(all, original);
  std::ranges::sort(all);
  const auto twice = std::ranges::unique(all);
  all.erase(twice.begin(), twice.end());
  return all;
}

/// The number of damaged files with each outcome.
struct Outcomes {
  std::uint64_t refused = 0, same = 0, changed = 0;
  /// The damage that caused the first undetected change.
  std::string first_change;

  void add(ReadResult result, const std::string& what) {
    if (result == ReadResult::refused) ++refused;
    if (result == ReadResult::same) ++same;
    if (result == ReadResult::changed && changed++ == 0) first_change = what;
  }
};

Outcomes damage_every_byte(const std::vector<std::byte>& file) {
  const BetonReader original(file, "original.beton", kSmallPages);
  std::vector<std::byte> damaged = file;
  Outcomes outcomes;
  for (const ByteRange& range : metadata_ranges(original)) {
    for (std::uint64_t at = range.begin; at < range.end; ++at) {
      for (const std::byte value : corrupted_values(file[at])) {
        damaged[at] = value;
        outcomes.add(read(damaged, original),
                     fmt::format("byte {} to {:#x}", at, std::to_integer<unsigned>(value)));
      }
      damaged[at] = file[at];
    }
  }
  return outcomes;
}

Outcomes cut_at_every_byte(const std::vector<std::byte>& file) {
  const BetonReader original(file, "original.beton", kSmallPages);
  Outcomes outcomes;
  for (const ByteRange& range : metadata_ranges(original)) {
    for (std::uint64_t size = range.begin; size < range.end; ++size) {
      // A separate allocation, so that a sanitizer detects every read past the end of the cut file.
      const std::vector<std::byte> cut(file.begin(),
                                       file.begin() + static_cast<std::ptrdiff_t>(size));
      outcomes.add(read(cut, original), fmt::format("cut at {}", size));
    }
  }
  return outcomes;
}

std::uint64_t peak_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

class CorruptionTest : public testing::TestWithParam<const char*> {
 protected:
  void TearDown() override { EXPECT_LT(peak_bytes() - before_, std::uint64_t{512} << 20); }
  std::uint64_t before_ = peak_bytes();
};
INSTANTIATE_TEST_SUITE_P(Files, CorruptionTest,
                         testing::Values("img_raw_w1", "img_jpg_w3", "img_smart_w3",
                                         "img_prop_nette_w1", "scalars_only", "wds_w2",
                                         "allfields_w1", "allfields_w3_empty", "bytes_first_empty",
                                         "masks_w1"),
                         [](const auto& golden) { return golden.param; });

TEST_P(CorruptionTest, WithChecksumsAnyDamageIsAnErrorOrChangesNothing) {
  const auto file = test::with_small_pages(golden_beton(GetParam()), true);
  const Outcomes outcomes = damage_every_byte(file);
  EXPECT_EQ(outcomes.changed, 0U) << outcomes.first_change;
  EXPECT_GT(outcomes.refused, 10'000U);
  const Outcomes cuts = cut_at_every_byte(file);
  EXPECT_EQ(cuts.changed + cuts.same, 0U) << cuts.first_change;
}

TEST_P(CorruptionTest, WithoutChecksumsDamageNeverReadsOutOfBounds) {
  const auto file = test::with_small_pages(golden_beton(GetParam()), false);
  const Outcomes outcomes = damage_every_byte(file);
  EXPECT_GT(outcomes.refused, 400U);
  const Outcomes cuts = cut_at_every_byte(file);
  EXPECT_EQ(cuts.changed, 0U) << cuts.first_change;
  fmt::print("{}: {} damaged files rejected, {} read unchanged, {} read with changes\n", GetParam(),
             outcomes.refused, outcomes.same, outcomes.changed);
}

/// Damages the file as FFCV wrote it: with FFCV's pages, an unsorted allocation table, and
/// meaningless pointers for empty values.
TEST_P(CorruptionTest, DamageInFfcvsLayoutNeverReadsOutOfBounds) {
  const auto file = golden_beton(GetParam());
  EXPECT_GT(damage_every_byte(file).refused, 400U);
}

// --- JPEG data ---

/// Draws random positions in the JPEGs of a golden file with checksums.
class JpegDamageTest : public testing::Test {
 protected:
  static constexpr int kFlips = 16'000;
  static constexpr int kCuts = 4'000;

  JpegDamageTest() {
    for (std::uint64_t i = 0; i < reader_.size(); ++i) {
      const ImageRecord image = reader_.image(i, 0);
      if (image.mode == ImageMode::jpg) jpegs_.push_back(i);
    }
  }
  /// A JPEG and a position in it, both drawn at random.
  struct Position {
    std::uint64_t sample = 0;
    std::uint64_t at = 0;
    std::uint64_t size = 0;
  };
  Position draw() {
    const std::uint64_t sample = jpegs_[random_() % jpegs_.size()];
    const std::uint64_t size = reader_.blob_bytes(sample, 0);
    return {sample, random_() % size, size};
  }

  std::vector<std::byte> file_ = test::with_small_pages(golden_beton("img_jpg_w3"), true);
  BetonReader reader_{file_, "jpegs.beton", kSmallPages};
  std::vector<std::uint64_t> jpegs_;
  std::mt19937_64 random_{7};
};

TEST_F(JpegDamageTest, ChecksumsNoticeEveryFlippedBitAndEveryCut) {
  std::vector<std::byte> damaged;
  const auto is_detected = [&](const Position& position) {
    try {
      reader_.check_value(position.sample, 0, damaged);
      return false;
    } catch (const DataError&) {
      return true;
    }
  };
  for (int i = 0; i < kFlips; ++i) {
    const Position position = draw();
    const auto jpeg = reader_.blob(position.sample, 0);
    damaged.assign(jpeg.begin(), jpeg.end());
    damaged[position.at] ^= static_cast<std::byte>(1U << random_() % 8);
    ASSERT_TRUE(is_detected(position)) << position.at;
  }
  for (int i = 0; i < kCuts; ++i) {
    const Position position = draw();
    const auto jpeg = reader_.blob(position.sample, 0);
    // Blocks that the disk has lost read as zeros. The last byte of a JPEG is never zero, so this
    // always changes the value.
    damaged.assign(jpeg.begin(), jpeg.begin() + static_cast<std::ptrdiff_t>(position.at));
    damaged.resize(position.size, std::byte{0});
    ASSERT_TRUE(is_detected(position)) << position.at;
    damaged.resize(position.at);
    ASSERT_TRUE(is_detected(position)) << position.at;
  }
}

/// The number of damaged JPEGs with each outcome of decoding, without checksums. FORMAT.md shows
/// the shares.
struct DecoderOutcomes {
  int refused = 0, same = 0, changed = 0;
};

class JpegDecoderDamageTest : public JpegDamageTest {
 protected:
  /// Decodes `damaged`, compares its pixels with those of the intact JPEG, and counts the outcome.
  void decode(const Position& position, std::span<const std::byte> damaged,
              DecoderOutcomes& outcomes) {
    const ImageRecord image = reader_.image(position.sample, 0);
    const Rect all{0, 0, image.height, image.width};
    try {
      const ImageView pixels = decoder_.decode(damaged, image.height, image.width, all);
      const ImageView right = other_.decode(image.bytes, image.height, image.width, all);
      bool same = true;
      for (int y = 0; y < image.height && same; ++y)
        same = std::equal(pixels.row(y), pixels.row(y) + std::ptrdiff_t{3} * image.width,
                          right.row(y));
      ++(same ? outcomes.same : outcomes.changed);
    } catch (const DataError&) {
      ++outcomes.refused;
    }
  }
  static void print(const char* what, const DecoderOutcomes& o, int count) {
    fmt::print("{}: {:.1f} % refused, {:.1f} % same pixels, {:.1f} % different pixels\n", what,
               100.0 * o.refused / count, 100.0 * o.same / count, 100.0 * o.changed / count);
  }
  JpegDecoder decoder_;
  JpegDecoder other_;
};

TEST_F(JpegDecoderDamageTest, WithoutChecksumsTheDecoderNoticesNearlyEveryCutAndSomeFlips) {
  DecoderOutcomes flips;
  DecoderOutcomes cuts;
  DecoderOutcomes zeros;
  std::vector<std::byte> damaged;
  for (int i = 0; i < kFlips; ++i) {
    const Position position = draw();
    const auto jpeg = reader_.blob(position.sample, 0);
    damaged.assign(jpeg.begin(), jpeg.end());
    damaged[position.at] ^= static_cast<std::byte>(1U << random_() % 8);
    decode(position, damaged, flips);
  }
  for (int i = 0; i < kCuts; ++i) {
    const Position position = draw();
    const auto jpeg = reader_.blob(position.sample, 0);
    decode(position, jpeg.first(position.at), cuts);
    damaged.assign(jpeg.begin(), jpeg.begin() + static_cast<std::ptrdiff_t>(position.at));
    damaged.resize(position.size, std::byte{0});
    decode(position, damaged, zeros);
  }
  print("flipped bits", flips, kFlips);
  print("cuts", cuts, kCuts);
  print("zeros from a byte to the end", zeros, kCuts);
  EXPECT_GT(flips.refused, kFlips / 50);
  EXPECT_GT(cuts.refused, kCuts * 9 / 10);
}

}  // namespace
}  // namespace precast::data
