// Compares decoding in lanes with libjpeg-turbo, for every number of lanes and every size of the
// lookup table, on every SIMD instruction set; then with damaged scans and wrong checkpoints.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "data/decode/baseline_decoder.h"
#include "data/decode/jpeg_decoder.h"
#include "framework/core/error.h"
#include "tests/data/decode/synthetic_jpeg.h"
#include "tests/support/simd_targets.h"

namespace precast::data {
namespace {

using test::copy_of;
using test::cut;
using test::encode;
using test::SyntheticJpeg;

using Pixels = std::vector<std::uint8_t>;

/// {lanes, bits that index the lookup table}. Every allowed number of lanes and of bits occurs.
const std::vector<LaneShape> kShapes = {{1, 12}, {2, 10}, {3, 11}, {3, 12}, {4, 11}};

/// A decoder that has already seen the tables of an image, so that it decodes the next image in
/// lanes.
class LaneDecoder {
 public:
  LaneDecoder(LaneShape shape, const std::vector<std::byte>& jpeg, std::size_t interval)
      : decoder_(shape), header_(*parse_baseline_header(jpeg)), interval_(interval) {
    BaselineDecoder serial{LaneShape{}};
    const Rect whole{0, 0, header_.height, header_.width};
    EXPECT_TRUE(
        serial.decode(jpeg, header_, whole, JpegDct::ifast, {}, {interval, &points}).has_value());
    for (int time = 0; time < 2; ++time) static_cast<void>(decode(jpeg, {0, 0, 1, 1}));
  }

  /// The pixels; nothing if the decoder leaves the image to libjpeg.
  std::optional<Pixels> decode(const std::vector<std::byte>& jpeg, const Rect& region,
                               JpegDct dct = JpegDct::ifast) {
    const auto header = parse_baseline_header(jpeg);
    if (!header) return std::nullopt;
    const auto pixels = decoder_.decode(jpeg, *header, region, dct, {interval_, points}, {});
    return pixels ? std::optional(copy_of(*pixels)) : std::nullopt;
  }

  std::vector<std::uint64_t> points;

 private:
  BaselineDecoder decoder_;
  BaselineHeader header_;
  std::size_t interval_;
};

Pixels decode_by_libjpeg(const std::vector<std::byte>& jpeg, const SyntheticJpeg& kind,
                         bool accurate) {
  JpegDecoder libjpeg({.accurate_dct = accurate, .libjpeg_only = true});
  return copy_of(libjpeg.decode(jpeg, kind.height, kind.width, {0, 0, kind.height, kind.width}));
}

class LanesTest : public ::testing::TestWithParam<SyntheticJpeg> {};

TEST_P(LanesTest, PixelsAreThoseOfLibjpeg) {
  const SyntheticJpeg kind = GetParam();
  const std::vector<std::byte> jpeg = encode(kind);
  const Pixels whole = decode_by_libjpeg(jpeg, kind, false);
  const Pixels accurate = decode_by_libjpeg(jpeg, kind, true);
  test::for_each_simd_target([&](const char* target) {
    SCOPED_TRACE(target);
    for (const std::size_t interval : {1, 3, 8, 1000}) {
      for (const LaneShape& shape : kShapes) {
        LaneDecoder lanes(shape, jpeg, interval);
        for (int trial = 0; trial < 12; ++trial) {
          const Rect region = test::region_of(kind, trial);
          ASSERT_EQ(lanes.decode(jpeg, region), cut(whole, kind.width, region))
              << shape.lanes << " lanes, " << shape.bits << " bits, every " << interval << ": "
              << region.row << "," << region.column << " " << region.height << "x" << region.width;
          if (trial < 3) {
            ASSERT_EQ(lanes.decode(jpeg, region, JpegDct::islow),
                      cut(accurate, kind.width, region));
          }
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, LanesTest,
    ::testing::Values(SyntheticJpeg{.height = 64, .width = 64},
                      SyntheticJpeg{.height = 129, .width = 95},
                      SyntheticJpeg{.height = 8, .width = 8},
                      SyntheticJpeg{.height = 9, .width = 300},
                      SyntheticJpeg{.height = 97, .width = 130, .columns = 2, .rows = 1},
                      SyntheticJpeg{.height = 97, .width = 130, .columns = 1, .rows = 1},
                      SyntheticJpeg{.height = 61, .width = 67, .columns = 0},
                      SyntheticJpeg{.height = 61, .width = 67, .quality = 100, .noise = 150},
                      SyntheticJpeg{.height = 61, .width = 167, .quality = 1, .noise = 0},
                      SyntheticJpeg{.height = 61, .width = 167, .noise = 0},
                      SyntheticJpeg{.height = 75, .width = 83, .quality = 30, .optimized = true},
                      SyntheticJpeg{.height = 75, .width = 83, .quality = 99, .optimized = true}));

/// An image with more rows of MCUs, and an image with longer rows, than in the other tests.
TEST(Lanes, LargeAndWideImagesAreThoseOfLibjpeg) {
  for (const SyntheticJpeg& kind : {SyntheticJpeg{.height = 700, .width = 600, .noise = 20},
                                    SyntheticJpeg{.height = 40, .width = 22'000, .quality = 60}}) {
    const std::vector<std::byte> jpeg = encode(kind);
    const Pixels whole = decode_by_libjpeg(jpeg, kind, false);
    LaneDecoder lanes({3, 12}, jpeg, 8);
    for (int trial = 0; trial < 6; ++trial) {
      const Rect region = test::region_of(kind, trial);
      ASSERT_EQ(lanes.decode(jpeg, region), cut(whole, kind.width, region)) << trial;
    }
  }
}

constexpr SyntheticJpeg kDamaged{.height = 80, .width = 150, .quality = 60};
const Rect kWhole{0, 0, kDamaged.height, kDamaged.width};

/// Changes bits throughout a scan, and decodes it with the checkpoints of the intact scan.
TEST(LanesOnDamage, ChangedBitsGiveWhatLibjpegGivesOrNothing) {
  const std::vector<std::byte> good = encode(kDamaged);
  const std::size_t scan = parse_baseline_header(good)->scan_begin;
  const Pixels expected = decode_by_libjpeg(good, kDamaged, false);
  for (const LaneShape& shape : {LaneShape{3, 12}, LaneShape{2, 10}}) {
    LaneDecoder lanes(shape, good, 3);
    std::size_t taken = 0;
    for (std::size_t bit = scan * 8; bit < good.size() * 8; bit += 5) {
      std::vector<std::byte> bad = good;
      bad[bit / 8] ^= std::byte{0x80} >> (bit % 8);
      const auto pixels = lanes.decode(bad, kWhole);
      if (pixels) {
        ++taken;
        ASSERT_EQ(*pixels, decode_by_libjpeg(bad, kDamaged, false)) << bit;
      }
      if (bit % 8 == 0) {
        ASSERT_EQ(lanes.decode(good, kWhole), expected) << "after " << bit;
      }
    }
    // Some changed scans are still valid, for example if the bit belongs to an AC coefficient.
    EXPECT_GT(taken, 100U);
  }
}

TEST(LanesOnDamage, CutScansGiveNothing) {
  const std::vector<std::byte> good = encode(kDamaged);
  const std::size_t scan = parse_baseline_header(good)->scan_begin;
  LaneDecoder lanes({3, 12}, good, 3);
  for (std::size_t length = scan; length < good.size(); ++length) {
    const std::vector<std::byte> bad(good.begin(),
                                     good.begin() + static_cast<std::ptrdiff_t>(length));
    ASSERT_FALSE(lanes.decode(bad, kWhole).has_value()) << length;
  }
  EXPECT_TRUE(lanes.decode(good, kWhole).has_value());
}

TEST(LanesOnDamage, AnyWrongCheckpointIsNoticed) {
  const std::vector<std::byte> jpeg = encode(kDamaged);
  const Pixels expected = decode_by_libjpeg(jpeg, kDamaged, false);
  LaneDecoder lanes({3, 12}, jpeg, 3);
  const std::vector<std::uint64_t> good = lanes.points;
  for (std::size_t p = 0; p < good.size(); ++p) {
    for (unsigned bit = 0; bit < 64; ++bit) {
      lanes.points = good;
      lanes.points[p] ^= std::uint64_t{1} << bit;
      const auto pixels = lanes.decode(jpeg, kWhole);
      ASSERT_FALSE(pixels.has_value()) << p << " " << bit;
    }
    lanes.points = good;
    ASSERT_EQ(lanes.decode(jpeg, kWhole), expected) << p;
  }
}

TEST(LanesOnDamage, ArbitraryCheckpointsNeverCrash) {
  const std::vector<std::byte> jpeg = encode(kDamaged);
  const Pixels expected = decode_by_libjpeg(jpeg, kDamaged, false);
  for (const std::size_t interval : {1, 4, 100}) {
    LaneDecoder lanes({3, 11}, jpeg, interval);
    const std::vector<std::uint64_t> good = lanes.points;
    RandomStream random(9, 0, interval, RandomUse::test);
    for (int trial = 0; trial < 3000; ++trial) {
      std::uint64_t bit = 0;
      for (std::uint64_t& point : lanes.points) {
        bit += random.below(1 + jpeg.size() * 16 / good.size());
        point = (random.next_u32() & 3U) == 0 ? random.next_u32() : bit | 2048ULL << 28;
      }
      static_cast<void>(lanes.decode(jpeg, test::region_of(kDamaged, trial % 40)));
      lanes.points = good;
      if (trial % 50 == 0) {
        ASSERT_EQ(lanes.decode(jpeg, kWhole), expected) << trial;
      }
    }
  }
}

TEST(LaneTableCacheTest, TablesAreBuiltOnTheirSecondUse) {
  const std::vector<std::byte> jpegs[] = {encode({}), encode({.optimized = true}),
                                          encode({.quality = 40, .optimized = true}),
                                          encode({.quality = 20, .optimized = true})};
  std::vector<std::vector<HuffmanTable>> tables;
  for (const std::vector<std::byte>& jpeg : jpegs) {
    const auto header = *parse_baseline_header(jpeg);
    auto& of = tables.emplace_back(6);
    for (std::size_t c = 0; c < 3; ++c) {
      ASSERT_TRUE(of[2 * c].build(header.component[c].dc, HuffmanTable::Kind::dc));
      ASSERT_TRUE(of[2 * c + 1].build(header.component[c].ac, HuffmanTable::Kind::ac));
    }
  }
  LaneTableCache cache;
  for (const auto& of : tables) EXPECT_EQ(cache.find(of, 11), nullptr);
  for (const auto& of : tables) {
    const LaneTables* found = cache.find(of, 11);
    ASSERT_NE(found, nullptr);
    EXPECT_TRUE(found->has_same_codes(of));
    EXPECT_EQ(found->dc(1), found->dc(2)) << "both chroma components share their tables";
    EXPECT_NE(found->dc(0), found->dc(1));
  }
}

/// JpegDecoder uses libjpeg for images that decoding in lanes rejects.
TEST(LanesOnDamage, LibjpegDecodesWhatLanesReject) {
  if (lane_shape_of_cpu().lanes == 0) GTEST_SKIP() << "this CPU does not use lanes";
  const std::vector<std::byte> good = encode(kDamaged);
  std::vector<std::uint64_t> points;
  JpegDecoder decoder;
  static_cast<void>(decoder.decode(good, kDamaged.height, kDamaged.width, kWhole, 3, points));
  std::vector<std::uint64_t> wrong = points;
  wrong[points.size() / 2] += 5;
  for (int time = 0; time < 3; ++time) {
    EXPECT_EQ(copy_of(decoder.decode(good, kDamaged.height, kDamaged.width, kWhole, {3, wrong})),
              decode_by_libjpeg(good, kDamaged, false));
    EXPECT_EQ(copy_of(decoder.decode(good, kDamaged.height, kDamaged.width, kWhole, {3, points})),
              decode_by_libjpeg(good, kDamaged, false));
  }
}

}  // namespace
}  // namespace precast::data
