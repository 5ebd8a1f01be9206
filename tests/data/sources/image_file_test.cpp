#include "data/sources/image_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "framework/core/error.h"
#include "tests/data/sources/sample_images.h"

namespace precast::data {
namespace {

using test::gradient;
using test::jpeg_file;
using test::JpegKind;
using test::png_file;
using testing::HasSubstr;

std::string refusal(std::span<const std::byte> file) {
  Image out;
  try {
    (void)decode_image_file(file, out);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

/// Mean distance of two pictures in levels.
double distance(const Image& a, const Image& b) {
  EXPECT_EQ(a.pixels.size(), b.pixels.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) sum += std::abs(a.pixels[i] - b.pixels[i]);
  return sum / static_cast<double>(a.pixels.size());
}

TEST(ImageFile, PngsComeOutExactly) {
  const Image image = gradient(37, 53);
  Image out;
  const ImageFileFacts facts = decode_image_file(png_file(image), out);
  EXPECT_TRUE(facts.png);
  EXPECT_FALSE(facts.grey);
  EXPECT_EQ(out.height, 37);
  EXPECT_EQ(out.width, 53);
  EXPECT_EQ(out.pixels, image.pixels);
}

TEST(ImageFile, AlphaIsDroppedAndGreyRepeated) {
  const Image image = gradient(11, 13);
  Image out;
  EXPECT_FALSE(decode_image_file(png_file(image, 4), out).grey);
  EXPECT_EQ(out.pixels, image.pixels);
  for (const int channels : {1, 2}) {
    EXPECT_TRUE(decode_image_file(png_file(image, channels), out).grey);
    for (std::size_t i = 0; i < out.pixels.size(); ++i) {
      ASSERT_EQ(out.pixels[i], image.pixels[i / 3 * 3]) << channels << " " << i;
    }
  }
}

TEST(ImageFile, JpegsOfAllKindsComeOutAsRgb) {
  const Image image = gradient(48, 64);
  Image out;
  const ImageFileFacts rgb = decode_image_file(jpeg_file(image), out);
  EXPECT_TRUE(rgb.baseline_ycbcr);
  EXPECT_LT(distance(out, image), 3.0);
  const ImageFileFacts progressive =
      decode_image_file(jpeg_file(image, JpegKind::progressive), out);
  EXPECT_FALSE(progressive.baseline_ycbcr);
  EXPECT_LT(distance(out, image), 3.0);
  // Channels stored as inverted inks with no black are the light itself.
  const ImageFileFacts cmyk = decode_image_file(jpeg_file(image, JpegKind::cmyk), out);
  EXPECT_TRUE(cmyk.cmyk);
  EXPECT_LT(distance(out, image), 3.0);
  const ImageFileFacts grey = decode_image_file(jpeg_file(image, JpegKind::grey), out);
  EXPECT_TRUE(grey.grey);
  EXPECT_EQ(out.pixels[0], out.pixels[1]);
  EXPECT_EQ(out.pixels[0], out.pixels[2]);
  EXPECT_NEAR(out.pixels[3 * 63], image.pixels[3 * 63], 4);
}

TEST(ImageFile, OtherContentIsRefusedWithItsFirstBytes) {
  EXPECT_THAT(refusal({}), HasSubstr("expected a JPEG or PNG file, got 0 bytes"));
  const std::string gif = "GIF89a..........";
  EXPECT_THAT(refusal(std::as_bytes(std::span(gif))), HasSubstr("begin with: 47 49 46 38"));
}

TEST(ImageFile, AFileThatEndsEarlyIsRefused) {
  const Image image = gradient(64, 64);
  for (const auto& file : {jpeg_file(image), jpeg_file(image, JpegKind::progressive),
                           jpeg_file(image, JpegKind::cmyk), png_file(image)}) {
    for (std::size_t size = 8; size < file.size() - 2; size += 7) {
      EXPECT_NE(refusal(std::span(file).first(size)), "") << size << " of " << file.size();
    }
  }
}

TEST(ImageFile, DamageIsRefusedOrDecodedButNeverFatal) {
  const Image image = gradient(24, 24);
  Image out;
  for (auto file : {jpeg_file(image), png_file(image)}) {
    for (std::size_t at = 0; at < file.size(); ++at) {
      const std::byte original = file[at];
      file[at] ^= std::byte{0xFF};
      // The largest size a header can claim is refused before memory is asked for.
      (void)refusal(file);
      file[at] = original;
    }
    EXPECT_EQ(refusal(file), "");
    (void)decode_image_file(file, out);
    EXPECT_LT(distance(out, image), 3.0);
  }
}

TEST(ImageFile, ASmallFileThatClaimsToBeHugeIsRefused) {
  std::vector<std::byte> file = jpeg_file(gradient(8, 8));
  for (std::size_t at = 0; at + 9 < file.size(); ++at) {
    if (file[at] != std::byte{0xFF} || file[at + 1] != std::byte{0xC0}) continue;
    for (std::size_t i = 5; i < 9; ++i) file[at + i] = std::byte{0xF0};
    break;
  }
  EXPECT_THAT(refusal(file), HasSubstr("expected 1 to 178956970 pixels, got 61680 x 61680"));
}

}  // namespace
}  // namespace precast::data
