// Compares precast's own decoder with libjpeg-turbo, the reference: JpegDecoder with and without
// it.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
// jpeglib.h needs std::FILE and std::size_t declared before it.
#include <jpeglib.h>

#include <optional>
#include <vector>

#include "data/decode/baseline_header.h"
#include "data/decode/jpeg_decoder.h"
#include "framework/core/error.h"
#include "framework/core/rng.h"
#include "tests/data/sources/sample_images.h"

namespace precast::data {
namespace {

struct Kind {
  int height = 64;
  int width = 64;
  int quality = 90;
  /// Of luma; 0: grey.
  int columns = 2;
  int rows = 2;
  bool optimized = false;
  int restart_interval = 0;
};

void PrintTo(const Kind& kind, std::ostream* out) {
  *out << kind.height << "x" << kind.width << " q" << kind.quality << " " << kind.columns << "x"
       << kind.rows << (kind.optimized ? " optimized" : "") << " restart " << kind.restart_interval;
}

/// Noise over a coarse pattern: every coefficient is used.
std::vector<unsigned char> noise(const Kind& kind, int channels) {
  RandomStream random(7, 0, static_cast<std::uint64_t>(kind.width), RandomUse::test);
  std::vector<unsigned char> samples;
  for (int y = 0; y < kind.height; ++y) {
    for (int x = 0; x < kind.width; ++x) {
      for (int c = 0; c < channels; ++c) {
        const int coarse = ((x / 11 + y / 7 + c) % 3) * 100;
        samples.push_back(static_cast<unsigned char>(coarse + static_cast<int>(random.below(56))));
      }
    }
  }
  return samples;
}

std::vector<std::byte> encode(const Kind& kind) {
  const int channels = kind.columns == 0 ? 1 : 3;
  return test::encode_jpeg(noise(kind, channels), kind.height, kind.width, channels,
                           [&](jpeg_compress_struct& state) {
                             jpeg_set_quality(&state, kind.quality, TRUE);
                             if (channels == 3) {
                               state.comp_info[0].h_samp_factor = kind.columns;
                               state.comp_info[0].v_samp_factor = kind.rows;
                             }
                             state.optimize_coding = kind.optimized ? TRUE : FALSE;
                             state.restart_interval = static_cast<unsigned>(kind.restart_interval);
                           });
}

std::vector<std::uint8_t> copy_of(const ImageView& view) {
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < view.height; ++y)
    pixels.insert(pixels.end(), view.row(y), view.row(y) + std::ptrdiff_t{3} * view.width);
  return pixels;
}

std::vector<std::uint8_t> cut(const std::vector<std::uint8_t>& pixels, int width,
                              const Rect& region) {
  const std::ptrdiff_t stride = std::ptrdiff_t{width} * 3;
  return copy_of({pixels.data() + region.row * stride + std::ptrdiff_t{region.column} * 3,
                  region.height, region.width, stride});
}

/// The first trial is the whole image.
Rect region_of(const Kind& kind, int trial) {
  if (trial == 0) return {0, 0, kind.height, kind.width};
  RandomStream random(3, 0, static_cast<std::uint64_t>(trial), RandomUse::test);
  const auto draw = [&](int bound) {
    return static_cast<int>(random.below(static_cast<std::uint64_t>(bound)));
  };
  Rect region{draw(kind.height), draw(kind.width), 0, 0};
  region.height = 1 + draw(kind.height - region.row);
  region.width = 1 + draw(kind.width - region.column);
  return region;
}

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

TEST(BaselineHeaderTest, NoCutHeaderIsTaken) {
  const std::vector<std::byte> jpeg = encode({});
  const std::size_t scan = parse_baseline_header(jpeg)->scan_begin;
  for (std::size_t length = 0; length < scan; ++length) {
    const std::vector<std::byte> cut(jpeg.begin(),
                                     jpeg.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_FALSE(parse_baseline_header(cut).has_value()) << length;
  }
}

/// The pixels, or nothing where the decoder refuses.
std::optional<std::vector<std::uint8_t>> try_decode(JpegDecoder& decoder,
                                                    const std::vector<std::byte>& jpeg,
                                                    const Kind& kind, const Rect& region) {
  try {
    return copy_of(decoder.decode(jpeg, kind.height, kind.width, region));
  } catch (const DataError&) {
    return std::nullopt;
  }
}

/// libjpeg reads on beyond a region, so it may refuse what this decoder does not look at; never the
/// other way round.
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
