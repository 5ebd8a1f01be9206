#include "data/image/image_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

// clang-format off: jpeglib.h needs <cstdio> above it.
#include <jpeglib.h>
#include <png.h>

#include <cstdio>
// clang-format on

#include "framework/core/archive/npy.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"

namespace precast::data {
namespace {

using test::gradient;
using test::jpeg_file;
using test::JpegKind;
using test::Names;
using test::png_file;

std::string error_of(std::span<const std::byte> file) {
  Image out;
  try {
    (void)decode_image_file(file, out);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

/// The mean absolute difference between two images, in levels.
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
  EXPECT_EQ(facts.format, ImageFormat::png);
  EXPECT_FALSE(facts.grey);
  EXPECT_EQ(out.height, 37);
  EXPECT_EQ(out.width, 53);
  EXPECT_EQ(out.pixels, image.pixels);
}

std::vector<std::byte> golden_image(const std::string& name) {
  return test::read_bytes(test::golden_dir() + "/images/files/" + name);
}

TEST(ImageFile, EveryKindOfFileGivesWhatPillowMakesOfIt) {
  const std::string folder = test::golden_dir() + "/images/";
  const NpyArray expected = read_npy(folder + "expected.npy");
  const auto cases = nlohmann::json::parse(std::ifstream(folder + "cases.json"))["cases"];
  ASSERT_EQ(expected.shape[0], static_cast<std::int64_t>(cases.size()));
  const std::size_t bytes = expected.bytes.size() / cases.size();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string name = cases[i]["file"];
    const std::vector<std::byte> file = golden_image(name);
    if (!std::string(cases[i]["refused"]).empty()) {
      EXPECT_NE(error_of(file), "") << name;
      continue;
    }
    Image out;
    const ImageFileFacts facts = decode_image_file(file, out);
    EXPECT_EQ(facts.format, format_from_extension(name));
    const int orientation = cases[i]["orientation"];
    EXPECT_EQ(facts.orientation, orientation >= 1 && orientation <= 8 ? orientation : 1) << name;
    const std::string mode = cases[i]["mode"];
    EXPECT_EQ(facts.grey, mode.starts_with("L") || mode == "I;16" || mode == "1" ||
                              name.starts_with("grey_alpha"))
        << name;
    EXPECT_EQ(facts.cmyk, mode == "CMYK") << name;
    EXPECT_EQ(facts.sixteen_bit, name.find("16") != std::string::npos) << name;
    EXPECT_EQ(facts.alpha, mode.ends_with("A") || name.find("transparent") != std::string::npos)
        << name;
    ASSERT_EQ(out.pixels.size(), bytes) << name;
    // Pillow converts all 16-bit values above 255 to white.
    if (mode == "I;16") continue;
    EXPECT_EQ(std::memcmp(out.pixels.data(), expected.bytes.data() + i * bytes, bytes), 0) << name;
  }
}

TEST(ImageFile, GreyOf16BitsKeepsItsUpperByte) {
  Image out;
  (void)decode_image_file(golden_image("grey_16.png"), out);
  // grey_8.png is the same image in 8 bits; the values in grey_16.png are 257 times as large.
  Image small;
  (void)decode_image_file(golden_image("grey_8.png"), small);
  for (std::size_t i = 0; i < out.pixels.size(); ++i)
    ASSERT_NEAR(out.pixels[i], small.pixels[i], 1) << i;
}

TEST(ImageFile, TellsWhichJpegsEveryDecoderTakesForTheSame) {
  const auto facts = [](const std::string& name) {
    Image out;
    return decode_image_file(golden_image(name), out);
  };
  for (const char* name : {"grey.jpg", "rgb_444.jpg", "rgb_422.jpg", "rgb_420.jpg",
                           "progressive.jpg", "grey_progressive.jpg", "without_app0.jpg"})
    EXPECT_TRUE(facts(name).plain_jpeg) << name;
  for (const char* name : {"stored_as_rgb.jpg", "cmyk.jpg", "ycck.jpg", "rgb_8.png", "lossy.webp"})
    EXPECT_FALSE(facts(name).plain_jpeg) << name;
  EXPECT_TRUE(facts("progressive.jpg").several_scans);
  EXPECT_FALSE(facts("rgb_420.jpg").several_scans);
  // Chroma is sampled more finely than luma, which TurboJPEG does not support.
  const Image image = gradient(32, 32);
  Image out;
  const auto odd = test::encode_jpeg({image.pixels.begin(), image.pixels.end()}, 32, 32, 3,
                                     [](jpeg_compress_struct& state) {
                                       state.comp_info[0].h_samp_factor = 1;
                                       state.comp_info[1].h_samp_factor = 2;
                                     });
  EXPECT_FALSE(decode_image_file(odd, out).plain_jpeg);
}

TEST(ImageFile, DamagedExifSaysNothing) {
  std::vector<std::byte> file = golden_image("turned_6be.jpg");
  Image out;
  const auto exif = std::ranges::search(file, std::as_bytes(std::span("Exif", 4))).begin();
  const auto first = static_cast<std::size_t>(exif - file.begin());
  for (std::size_t at = first; at < first + 40; ++at) {
    const std::byte original = std::exchange(file[at], std::byte{0xFF});
    const int orientation = decode_image_file(file, out).orientation;
    EXPECT_TRUE(orientation == 1 || orientation == 6) << at;
    file[at] = original;
  }
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
  EXPECT_TRUE(rgb.plain_jpeg);
  EXPECT_FALSE(rgb.several_scans);
  EXPECT_LT(distance(out, image), 3.0);
  const ImageFileFacts progressive =
      decode_image_file(jpeg_file(image, JpegKind::progressive), out);
  EXPECT_TRUE(progressive.several_scans);
  EXPECT_LT(distance(out, image), 3.0);
  // The inks are stored inverted and without black, so the first three channels are the RGB values.
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
  EXPECT_THAT(error_of({}), Names("JPEG", "PNG", "WebP", 0));
  const std::string gif = "GIF89a..........";
  EXPECT_THAT(error_of(std::as_bytes(std::span(gif))), Names(16, "47 49 46 38"));
}

TEST(ImageFile, AFileThatEndsEarlyIsRefused) {
  const Image image = gradient(64, 64);
  for (const auto& file :
       {jpeg_file(image), jpeg_file(image, JpegKind::progressive), jpeg_file(image, JpegKind::cmyk),
        png_file(image), golden_image("lossy.webp"), golden_image("animated.webp")}) {
    for (std::size_t size = 8; size < file.size() - 2; size += 7) {
      EXPECT_NE(error_of(std::span(file).first(size)), "") << size << " of " << file.size();
    }
  }
}

TEST(ImageFile, DamageIsRefusedOrDecodedButNeverFatal) {
  const Image image = gradient(24, 24);
  Image out;
  for (auto file : {jpeg_file(image), png_file(image), golden_image("lossless.webp"),
                    golden_image("lossy_alpha.webp"), golden_image("animated.webp")}) {
    for (std::size_t at = 0; at < file.size(); ++at) {
      const std::byte original = file[at];
      file[at] ^= std::byte{0xFF};
      // If the change makes a header claim a huge size, the file is rejected before memory is
      // allocated.
      (void)error_of(file);
      file[at] = original;
    }
    EXPECT_EQ(error_of(file), "");
    const ImageFormat format = decode_image_file(file, out).format;
    EXPECT_TRUE(format == ImageFormat::webp || distance(out, image) < 3.0);
  }
}

TEST(ImageFile, JpegsThatCostFarMoreThanTheirSizeAreRefused) {
  const std::vector<std::byte> good = jpeg_file(gradient(32, 32), JpegKind::three_scans);
  const std::vector<std::byte> marker = {std::byte{0xFF}, std::byte{0xDA}};
  const auto last = std::find_end(good.begin(), good.end(), marker.begin(), marker.end());
  std::vector<std::byte> many(good.begin(), good.end() - 2);
  for (int i = 0; i < 250; ++i) many.insert(many.end(), last, good.end() - 2);
  many.insert(many.end(), good.end() - 2, good.end());
  EXPECT_THAT(error_of(many), Names(200));

  std::vector<std::byte> large = jpeg_file(gradient(32, 32), JpegKind::progressive);
  const std::vector<std::byte> frame = {std::byte{0xFF}, std::byte{0xC2}};
  const auto sizes = std::search(large.begin(), large.end(), frame.begin(), frame.end()) + 5;
  for (const int at : {0, 2}) {
    sizes[at] = std::byte{12000 >> 8};
    sizes[at + 1] = std::byte{12000 & 255};
  }
  EXPECT_THAT(error_of(large), Names(1 << 28));
}

/// The position after a PNG's signature and its first chunk, IHDR.
constexpr std::ptrdiff_t kBehindIhdr = 33;

/// A PNG of 8 x 8 black pixels with a compressed text of `size` zeros.
std::vector<std::byte> png_with_text(std::size_t size) {
  std::vector<std::byte> file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp writer, png_bytep bytes, std::size_t count) {
        const auto* first = reinterpret_cast<const std::byte*>(bytes);
        auto& out = *static_cast<std::vector<std::byte>*>(png_get_io_ptr(writer));
        out.insert(out.end(), first, first + count);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, 8, 8, 8, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  std::string zeros(size, '0');
  png_text text{};
  text.compression = PNG_TEXT_COMPRESSION_zTXt;
  text.key = const_cast<char*>("Comment");
  text.text = zeros.data();
  text.text_length = size;
  png_set_text(png, info, &text, 1);
  png_write_info(png, info);
  png_byte row[8] = {};
  for (int y = 0; y < 8; ++y) png_write_row(png, row);
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

long peak_kb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(ImageFile, TextsInAPngAreNotUnfolded) {
  constexpr std::size_t kTextBytes = 7'000'000;
  const std::vector<std::byte> one = png_with_text(kTextBytes);
  const std::size_t length = png_get_uint_32(reinterpret_cast<png_const_bytep>(&one[kBehindIhdr]));
  const auto text = std::span(one).subspan(kBehindIhdr, length + 12);
  std::vector<std::byte> file = one;
  for (int i = 0; i < 60; ++i) file.insert(file.begin() + kBehindIhdr, text.begin(), text.end());
  ASSERT_LT(file.size(), 1'000'000U);
  // Runs in a separate process, because the peak memory of a process never falls.
  EXPECT_EXIT(
      {
        const long before = peak_kb();
        const bool decoded = error_of(file).empty();
        std::exit(decoded && peak_kb() - before < 100'000 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

/// Inserts a chunk after IHDR.
std::vector<std::byte> with_chunk(std::vector<std::byte> png, const std::string& name,
                                  const std::string& content, std::uint32_t length) {
  const std::string checked = name + content;
  const auto sum = static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size())));
  const auto big_endian = [](std::uint32_t number) {
    png_byte bytes[4];
    png_save_uint_32(bytes, number);
    return std::string(bytes, bytes + 4);
  };
  const std::string chunk = big_endian(length) + checked + big_endian(sum);
  const auto bytes = std::as_bytes(std::span(chunk));
  png.insert(png.begin() + kBehindIhdr, bytes.begin(), bytes.end());
  return png;
}

TEST(ImageFile, ChunksOfAPngThatDoNotChangeItsPixelsArePassedOver) {
  const Image image = gradient(8, 8);
  for (const char* name : {"bKGD", "cHRM", "gAMA", "hIST", "iCCP", "iTXt", "oFFs", "pCAL", "pHYs",
                           "sBIT", "sCAL", "sPLT", "sRGB", "tEXt", "tIME", "zTXt", "anYt"}) {
    Image out;
    (void)decode_image_file(with_chunk(png_file(image), name, "\1abcd", 5), out);
    EXPECT_EQ(out.pixels, image.pixels) << name;
  }
}

TEST(ImageFile, ChunksThatPassTheEndOfAPngAreRefused) {
  const std::vector<std::byte> good = png_file(gradient(8, 8));
  for (const std::uint32_t length : {200U, 990'000'000U, 0xFFFFFFFFU}) {
    EXPECT_THAT(error_of(with_chunk(good, "eXIf", "abcd", length)), Names("PNG", "IEND")) << length;
  }
  EXPECT_THAT(error_of(std::span(good).first(good.size() - 12)), Names("PNG", "IEND"));
}

TEST(ImageFile, ASmallFileThatClaimsToBeHugeIsRefused) {
  std::vector<std::byte> file = jpeg_file(gradient(8, 8));
  for (std::size_t at = 0; at + 9 < file.size(); ++at) {
    if (file[at] != std::byte{0xFF} || file[at + 1] != std::byte{0xC0}) continue;
    for (std::size_t i = 5; i < 9; ++i) file[at + i] = std::byte{0xF0};
    break;
  }
  EXPECT_THAT(error_of(file), Names(1, 178956970, "61680 x 61680"));
}

}  // namespace
}  // namespace precast::data
