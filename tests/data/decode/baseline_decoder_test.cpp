// Compares a JpegDecoder that uses precast's baseline decoder with one that uses only
// libjpeg-turbo, the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "data/decode/baseline_header.h"
#include "data/decode/jpeg_decoder.h"
#include "framework/core/error.h"
#include "tests/data/decode/synthetic_jpeg.h"

namespace precast::data {
namespace {

using Kind = test::SyntheticJpeg;
using test::copy_of;
using test::cut;
using test::encode;
using test::region_of;

class BaselineDecoderTest : public ::testing::TestWithParam<Kind> {};

TEST_P(BaselineDecoderTest, PixelsAreThoseOfLibjpegWithAndWithoutCheckpoints) {
  const Kind kind = GetParam();
  const std::vector<std::byte> jpeg = encode(kind);
  ASSERT_TRUE(parse_baseline_header(jpeg).has_value());
  for (const bool accurate : {false, true}) {
    JpegDecoder own({.accurate_dct = accurate});
    JpegDecoder libjpeg({.accurate_dct = accurate, .libjpeg_only = true});
    const auto whole =
        copy_of(libjpeg.decode(jpeg, kind.height, kind.width, {0, 0, kind.height, kind.width}));
    for (int trial = 0; trial < 60; ++trial) {
      const Rect region = region_of(kind, trial);
      const auto expected = cut(whole, kind.width, region);
      ASSERT_EQ(copy_of(libjpeg.decode(jpeg, kind.height, kind.width, region)), expected);
      ASSERT_EQ(copy_of(own.decode(jpeg, kind.height, kind.width, region)), expected)
          << region.row << "," << region.column << " " << region.height << "x" << region.width;
      for (const std::size_t interval : {1, 3, 8, 1000}) {
        std::vector<std::uint64_t> points;
        ASSERT_EQ(copy_of(own.decode(jpeg, kind.height, kind.width, region, interval, points)),
                  expected);
        ASSERT_FALSE(points.empty());
        ASSERT_EQ(copy_of(own.decode(jpeg, kind.height, kind.width, region, {interval, points})),
                  expected)
            << "every " << interval;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, BaselineDecoderTest,
    ::testing::Values(Kind{.height = 64, .width = 64}, Kind{.height = 129, .width = 95},
                      Kind{.height = 8, .width = 8}, Kind{.height = 9, .width = 300},
                      Kind{.height = 300, .width = 9}, Kind{.height = 16, .width = 17},
                      Kind{.height = 97, .width = 130, .columns = 2, .rows = 1},
                      Kind{.height = 33, .width = 15, .columns = 2, .rows = 1},
                      Kind{.height = 97, .width = 130, .columns = 1, .rows = 1},
                      Kind{.height = 61, .width = 67, .columns = 0},
                      Kind{.height = 61, .width = 67, .quality = 100},
                      Kind{.height = 61, .width = 67, .quality = 1},
                      Kind{.height = 75, .width = 83, .quality = 30, .optimized = true},
                      Kind{.height = 75, .width = 83, .quality = 99, .optimized = true}));

TEST(BaselineHeaderTest, LeavesOtherKindsToLibjpeg) {
  EXPECT_TRUE(parse_baseline_header(encode({})).has_value());
  EXPECT_FALSE(parse_baseline_header(encode({.restart_interval = 2})).has_value());
  EXPECT_FALSE(parse_baseline_header(encode({.columns = 1, .rows = 2})).has_value());
  EXPECT_FALSE(parse_baseline_header(encode({.columns = 4, .rows = 1})).has_value());
  EXPECT_FALSE(parse_baseline_header(encode({.height = 7, .width = 64})).has_value());
  EXPECT_FALSE(parse_baseline_header({}).has_value());
}

TEST(BaselineHeaderTest, LeavesThreeComponentsWithEqualIdsToLibjpeg) {
  std::vector<std::byte> jpeg = encode({});
  const auto after_marker = [&](int marker) {
    const std::byte bytes[] = {std::byte{0xFF}, static_cast<std::byte>(marker)};
    return std::ranges::search(jpeg, bytes).begin() + 2;
  };
  const auto frame = after_marker(0xC0), scan = after_marker(0xDA);
  for (const int component : {1, 2}) {
    frame[8 + 3 * component] = std::byte{0};
    scan[3 + 2 * component] = std::byte{0};
  }
  EXPECT_FALSE(parse_baseline_header(jpeg).has_value());
}

TEST(BaselineHeaderTest, TruncatedHeadersAreRejected) {
  const std::vector<std::byte> jpeg = encode({});
  const std::size_t scan = parse_baseline_header(jpeg)->scan_begin;
  for (std::size_t length = 0; length < scan; ++length) {
    const std::vector<std::byte> cut(jpeg.begin(),
                                     jpeg.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_FALSE(parse_baseline_header(cut).has_value()) << length;
  }
}

/// The pixels, or nothing if the decoder rejects the file.
std::optional<std::vector<std::uint8_t>> try_decode(JpegDecoder& decoder,
                                                    const std::vector<std::byte>& jpeg,
                                                    const Kind& kind, const Rect& region) {
  try {
    return copy_of(decoder.decode(jpeg, kind.height, kind.width, region));
  } catch (const DataError&) {
    return std::nullopt;
  }
}

/// libjpeg reads beyond a region, so it may reject a file because of data that precast's decoder
/// does not read. precast's decoder never rejects a file that libjpeg accepts.
TEST(BaselineDecoderOnDamage, CutFilesAreTakenOrRefusedAsByLibjpeg) {
  const Kind kind{.height = 80, .width = 72};
  const std::vector<std::byte> jpeg = encode(kind);
  const Rect whole{0, 0, 80, 72}, part{10, 10, 20, 20};
  JpegDecoder own, libjpeg({.libjpeg_only = true});
  const auto good_part = try_decode(libjpeg, jpeg, kind, part);
  int taken = 0;
  for (std::size_t length = 0; length <= jpeg.size(); length += 7) {
    const std::vector<std::byte> cut(jpeg.begin(),
                                     jpeg.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_EQ(try_decode(own, cut, kind, whole), try_decode(libjpeg, cut, kind, whole)) << length;
    const auto pixels = try_decode(own, cut, kind, part);
    EXPECT_TRUE(!pixels || pixels == good_part) << length;
    EXPECT_TRUE(pixels || !try_decode(libjpeg, cut, kind, part)) << length;
    taken += pixels.has_value() ? 1 : 0;
  }
  EXPECT_GT(taken, 10);
}

/// 0xFF bytes, however many, do not form a marker until a marker code follows.
TEST(BaselineDecoderOnDamage, FilesWithoutTheirEndMarkerAreTakenOrRefusedAsByLibjpeg) {
  const Kind kind{.height = 80, .width = 72};
  const std::vector<std::byte> jpeg = encode(kind);
  JpegDecoder own, libjpeg({.libjpeg_only = true});
  EXPECT_TRUE(try_decode(own, jpeg, kind, {0, 0, 80, 72}));
  for (std::size_t fill = 0; fill < 4; ++fill) {
    std::vector<std::byte> bad(jpeg.begin(), jpeg.end() - 2);
    bad.insert(bad.end(), fill, std::byte{0xFF});
    EXPECT_FALSE(try_decode(own, bad, kind, {0, 0, 80, 72})) << fill;
    EXPECT_FALSE(try_decode(libjpeg, bad, kind, {0, 0, 80, 72})) << fill;
    bad.push_back(std::byte{0xD9});
    EXPECT_EQ(try_decode(own, bad, kind, {0, 0, 80, 72}),
              try_decode(libjpeg, bad, kind, {0, 0, 80, 72}))
        << fill;
  }
}

TEST(BaselineDecoderOnDamage, ChangedBytesAreTakenOrRefusedAsByLibjpeg) {
  const Kind kind{.height = 40, .width = 56, .quality = 60};
  const std::vector<std::byte> good = encode(kind);
  const std::size_t scan = parse_baseline_header(good)->scan_begin;
  JpegDecoder own, libjpeg({.libjpeg_only = true});
  for (std::size_t at = scan; at < good.size(); ++at) {
    std::vector<std::byte> bad = good;
    bad[at] ^= static_cast<std::byte>(1 + at % 255);
    const Rect region{0, 0, kind.height, kind.width};
    EXPECT_EQ(try_decode(own, bad, kind, region), try_decode(libjpeg, bad, kind, region)) << at;
  }
}

}  // namespace
}  // namespace precast::data
