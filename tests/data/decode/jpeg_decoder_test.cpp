#include "data/decode/jpeg_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "data/beton/reader.h"
#include "framework/core/error.h"
#include "framework/core/rng.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/decode/pixel_copies.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::copy_of;
using test::gradient;
using test::jpeg_file;
using test::Names;

std::vector<std::uint8_t> cut(const Image& whole, const Rect& region) {
  return test::cut(whole.pixels, whole.width, region);
}

Image decode_whole(JpegDecoder& decoder, std::span<const std::byte> jpeg, int height, int width) {
  Image whole(height, width);
  whole.pixels = copy_of(decoder.decode(jpeg, height, width, {0, 0, height, width}));
  return whole;
}

/// Real photographs, as FFCV stored them.
class JpegDecoderTest : public ::testing::Test {
 protected:
  JpegDecoderTest() {
    test::write_bytes(folder_ / "x.beton", test::golden_beton("img_jpg_w3"));
    reader_.emplace(folder_ / "x.beton");
  }
  test::TemporaryFolder folder_;
  std::optional<BetonReader> reader_;
};

TEST_F(JpegDecoderTest, RegionEqualsTheSamePartOfTheWholeImage) {
  JpegDecoder decoder;
  RandomStream random(1, 0, 0, RandomUse::test);
  const auto draw = [&](int bound) {
    return static_cast<int>(random.below(static_cast<std::uint64_t>(bound)));
  };
  for (std::uint64_t sample = 0; sample < reader_->size(); ++sample) {
    const ImageRecord image = reader_->image(sample, 0);
    const Image whole = decode_whole(decoder, image.bytes, image.height, image.width);
    for (int trial = 0; trial < 40; ++trial) {
      Rect region{draw(image.height), draw(image.width), 0, 0};
      region.height = 1 + draw(image.height - region.row);
      region.width = 1 + draw(image.width - region.column);
      ASSERT_EQ(copy_of(decoder.decode(image.bytes, image.height, image.width, region)),
                cut(whole, region))
          << "sample " << sample << ": " << region.row << "," << region.column << " "
          << region.height << "x" << region.width;
    }
  }
}

TEST_F(JpegDecoderTest, CornersAndSinglePixelsAreExact) {
  JpegDecoder decoder;
  const ImageRecord image = reader_->image(1, 0);
  const int h = image.height, w = image.width;
  const Image whole = decode_whole(decoder, image.bytes, h, w);
  for (const Rect region :
       {Rect{0, 0, 1, 1}, Rect{h - 1, w - 1, 1, 1}, Rect{0, w - 1, h, 1}, Rect{h - 1, 0, 1, w},
        Rect{0, 15, h, 2}, Rect{15, 0, 2, w}, Rect{16, 16, 16, 16}}) {
    EXPECT_EQ(copy_of(decoder.decode(image.bytes, h, w, region)), cut(whole, region));
  }
}

TEST(JpegDecoderOnMadeFiles, GoodImagesDecodeAfterBadOnes) {
  const Image image = gradient(40, 56);
  const std::vector<std::byte> good = jpeg_file(image);
  JpegDecoder decoder;
  const Image before = decode_whole(decoder, good, 40, 56);
  for (std::size_t length :
       {std::size_t{0}, std::size_t{1}, std::size_t{20}, good.size() / 2, good.size() - 30}) {
    const std::span<const std::byte> cut_short(good.data(), length);
    EXPECT_THROW(decoder.decode(cut_short, 40, 56, {0, 0, 40, 56}), DataError)
        << length << " bytes";
    EXPECT_EQ(decode_whole(decoder, good, 40, 56).pixels, before.pixels)
        << "after " << length << " bytes";
    EXPECT_EQ(decode_whole(decoder, good, 40, 56).pixels, before.pixels);
  }
}

TEST(JpegDecoderOnMadeFiles, SizeMustBeWhatTheDatasetSays) {
  JpegDecoder decoder;
  const std::vector<std::byte> jpeg = jpeg_file(gradient(40, 56));
  try {
    decoder.decode(jpeg, 41, 56, {0, 0, 41, 56});
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), Names("56 x 41", "56 x 40"));
  }
}

TEST(JpegDecoderOnMadeFiles, GreyAndProgressiveFilesComeOutAsRgb) {
  JpegDecoder decoder;
  const Image image = gradient(33, 47);
  const Image grey = decode_whole(decoder, jpeg_file(image, test::JpegKind::grey), 33, 47);
  for (std::size_t p = 0; p < grey.pixels.size(); p += 3) {
    ASSERT_EQ(grey.pixels[p], grey.pixels[p + 1]);
    ASSERT_EQ(grey.pixels[p], grey.pixels[p + 2]);
  }
  const std::vector<std::byte> progressive = jpeg_file(image, test::JpegKind::progressive);
  const Image whole = decode_whole(decoder, progressive, 33, 47);
  const Rect region{5, 7, 20, 30};
  EXPECT_EQ(copy_of(decoder.decode(progressive, 33, 47, region)), cut(whole, region));
}

/// Removes all segments with this marker (FF `marker`, length, content).
std::vector<std::byte> without(const std::vector<std::byte>& jpeg, int marker) {
  std::vector<std::byte> rest;
  for (std::size_t i = 0; i < jpeg.size();) {
    const bool found = i + 3 < jpeg.size() && jpeg[i] == std::byte{0xFF} &&
                       std::to_integer<int>(jpeg[i + 1]) == marker;
    if (found) {
      i += 2 + (std::to_integer<std::size_t>(jpeg[i + 2]) << 8) +
           std::to_integer<std::size_t>(jpeg[i + 3]);
    } else {
      rest.push_back(jpeg[i++]);
    }
  }
  return rest;
}

TEST(JpegDecoderOnMadeFiles, TablesOfOneFileNeverDecodeTheNext) {
  const std::vector<std::byte> good = jpeg_file(gradient(40, 56));
  const std::vector<std::byte> no_quantization = without(good, 0xDB);
  ASSERT_LT(no_quantization.size(), good.size());
  JpegDecoder decoder;
  const Image whole = decode_whole(decoder, good, 40, 56);
  EXPECT_THROW(decoder.decode(no_quantization, 40, 56, {0, 0, 40, 56}), DataError);

  // A file without Huffman tables uses the standard tables (Motion JPEG), whatever was decoded
  // before.
  const std::vector<std::byte> optimized = jpeg_file(gradient(40, 56), test::JpegKind::progressive);
  static_cast<void>(decode_whole(decoder, optimized, 40, 56));
  EXPECT_EQ(decode_whole(decoder, without(good, 0xC4), 40, 56).pixels, whole.pixels);
}

/// Changes the size in the frame header (FF C0 or FF C2) and, if `kind` is not 0, replaces C0 or C2
/// with `kind`.
std::vector<std::byte> claiming(std::vector<std::byte> jpeg, int height, int width, int kind = 0) {
  for (std::size_t i = 0; i + 9 < jpeg.size(); ++i) {
    if (jpeg[i] != std::byte{0xFF}) continue;
    if (jpeg[i + 1] != std::byte{0xC0} && jpeg[i + 1] != std::byte{0xC2}) continue;
    if (kind != 0) jpeg[i + 1] = static_cast<std::byte>(kind);
    jpeg[i + 5] = static_cast<std::byte>(height >> 8);
    jpeg[i + 6] = static_cast<std::byte>(height & 0xFF);
    jpeg[i + 7] = static_cast<std::byte>(width >> 8);
    jpeg[i + 8] = static_cast<std::byte>(width & 0xFF);
    break;
  }
  return jpeg;
}

std::string problem(const std::vector<std::byte>& jpeg, int height, int width, const Rect& region) {
  JpegDecoder decoder;
  try {
    decoder.decode(jpeg, height, width, region);
  } catch (const DataError& error) {
    return error.what();
  }
  return "decoded";
}

/// A file of one kilobyte that claims to contain gigapixels must not take a gigabyte or a minute.
TEST(JpegDecoderOnMadeFiles, AreRefusedBeforeTheyCostMoreThanTheirSize) {
  const std::vector<std::byte> plain = jpeg_file(gradient(32, 32));
  const std::vector<std::byte> progressive =
      jpeg_file(gradient(32, 32), test::JpegKind::progressive);
  EXPECT_THAT(problem(claiming(plain, 65500, 65500), 65500, 65500, {0, 0, 65500, 65500}),
              Names("JPEG", 178956970, 4290250000));
  EXPECT_THAT(problem(claiming(progressive, 12000, 12000), 12000, 12000, {0, 0, 1, 1}),
              Names("JPEG", 268435456, 432000000));
  EXPECT_THAT(problem(claiming(plain, 32, 32, 0xC9), 32, 32, {0, 0, 1, 1}), Names("Huffman"));
  // The file has data for a part of the first row only, and the last row is requested. The first
  // warning is an error, so the rows in between are not decoded.
  EXPECT_THAT(problem(claiming(plain, 12000, 12000), 12000, 12000, {11999, 0, 1, 1}),
              Names("JPEG"));
}

TEST(JpegDecoderOnMadeFiles, AreRefusedAboveTwoHundredScans) {
  const std::vector<std::byte> good = jpeg_file(gradient(32, 32), test::JpegKind::three_scans);
  const std::vector<std::byte> scan_marker = {std::byte{0xFF}, std::byte{0xDA}};
  const auto last = std::find_end(good.begin(), good.end(), scan_marker.begin(), scan_marker.end());
  const std::vector<std::byte> scan(last, good.end() - 2);
  const auto with_scans = [&](int count) {
    std::vector<std::byte> jpeg(good.begin(), good.end() - 2);
    for (int i = 0; i < count; ++i) jpeg.insert(jpeg.end(), scan.begin(), scan.end());
    jpeg.insert(jpeg.end(), good.end() - 2, good.end());
    return jpeg;
  };
  EXPECT_EQ(problem(with_scans(100), 32, 32, {0, 0, 32, 32}), "decoded");
  EXPECT_THAT(problem(with_scans(250), 32, 32, {0, 0, 32, 32}), Names("200 scans"));
}

TEST(JpegDecoderOnMadeFiles, DamageNeverCrashesOrAffectsTheNextImage) {
  const std::vector<std::byte> good = jpeg_file(gradient(64, 64));
  JpegDecoder decoder;
  const Image before = decode_whole(decoder, good, 64, 64);
  RandomStream random(2, 0, 0, RandomUse::test);
  int refused = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<std::byte> bad = good;
    bad[random.below(bad.size())] ^= static_cast<std::byte>(1U << random.below(8));
    try {
      decoder.decode(bad, 64, 64, {8, 8, 40, 40});
    } catch (const DataError&) {
      ++refused;
    }
    if (trial % 100 == 0) {
      ASSERT_EQ(decode_whole(decoder, good, 64, 64).pixels, before.pixels);
    }
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace precast::data
