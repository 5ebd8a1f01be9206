#include "data/write/image_field.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// clang-format off: jpeglib.h needs <cstdio> above it.
#include <jpeglib.h>

#include <cstdio>
// clang-format on

#include "data/beton/reader.h"
#include "data/image/image_file.h"
#include "data/write/number_fields.h"
#include "data/write/register.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/message_matchers.h"
#include "tests/support/part_spec.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::gradient;
using test::jpeg_file;
using test::JpegKind;
using test::Names;

struct Stored {
  ImageMode mode;
  int width;
  int height;
  std::vector<std::byte> blob;
  bool operator==(const Stored&) const = default;
};

Stored encode(ImageField& field, const ImageInput& input, std::uint64_t sample = 0) {
  EncodedValue out;
  field.encode(input, sample, out);
  EXPECT_EQ(out.metadata.size(), kImageMetadataBytes);
  const std::byte* at = out.metadata.data();
  return {static_cast<ImageMode>(at[0]), load<std::uint16_t>(at + kImageWidthAt),
          load<std::uint16_t>(at + kImageHeightAt), out.blob};
}

Stored encode(const ImageFieldOptions& options, const Image& image, std::uint64_t sample = 0) {
  ImageField field(options);
  return encode(field, {{}, image}, sample);
}

TEST(ImageField, RawHoldsThePixels) {
  const Image image = gradient(30, 40);
  const Stored stored = encode({.mode = ImageWriteMode::raw}, image);
  EXPECT_EQ(stored.mode, ImageMode::raw);
  EXPECT_EQ(stored.width, 40);
  EXPECT_EQ(stored.height, 30);
  const auto pixels = std::as_bytes(std::span(image.pixels));
  EXPECT_EQ(stored.blob, std::vector<std::byte>(pixels.begin(), pixels.end()));
}

/// The segments before a JPEG's entropy-coded data: tables, sampling, size.
std::vector<std::byte> tables_of(std::span<const std::byte> jpeg) {
  std::size_t at = 2;
  while (jpeg[at + 1] != std::byte{0xDA}) {
    at += 2 + std::to_integer<std::size_t>(jpeg[at + 2]) * 256 +
          std::to_integer<std::size_t>(jpeg[at + 3]);
  }
  return {jpeg.begin(), jpeg.begin() + static_cast<std::ptrdiff_t>(at)};
}

TEST(ImageField, JpegsHaveTheTablesThatFfcvWrites) {
  const test::TemporaryFolder folder;
  test::write_bytes(folder / "a.beton", test::golden_beton("img_jpg_w3"));
  const BetonReader reader(folder / "a.beton");
  for (std::uint64_t i = 0; i < reader.size(); ++i) {
    const ImageRecord golden = reader.image(i, 0);
    const Stored ours = encode({}, gradient(golden.height, golden.width));
    EXPECT_EQ(ours.mode, ImageMode::jpg);
    EXPECT_EQ(tables_of(ours.blob), tables_of(golden.bytes)) << i;
  }
}

TEST(ImageField, EncodingAPictureThatWasAJpegComesBackAlmostTheSame) {
  const Image image = gradient(61, 83);
  Image decoded;
  (void)decode_image_file(encode({}, image).blob, decoded);
  double sum = 0;
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    sum += std::abs(image.pixels[i] - decoded.pixels[i]);
  }
  EXPECT_LT(sum / static_cast<double>(image.pixels.size()), 3.0);
}

TEST(ImageField, SmartStoresAJpegAboveItsThresholdAndNotAtIt) {
  const Image image = gradient(10, 20);
  ImageFieldOptions options{.mode = ImageWriteMode::smart, .smart_threshold_bytes = 600};
  EXPECT_EQ(encode(options, image).mode, ImageMode::raw);
  options.smart_threshold_bytes = 599;
  EXPECT_EQ(encode(options, image).mode, ImageMode::jpg);
}

TEST(ImageField, ProportionDrawsByTheSampleAlone) {
  const Image image = gradient(8, 8);
  const ImageFieldOptions options{
      .mode = ImageWriteMode::proportion, .compress_probability = 0.3, .seed = 7};
  int jpg = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    if (encode(options, image, i).mode == ImageMode::jpg) ++jpg;
  }
  // Within four standard deviations of a binomial distribution.
  EXPECT_NEAR(jpg, 600, 82);
  ImageFieldOptions all = options;
  all.compress_probability = 1;
  ImageFieldOptions none = options;
  none.compress_probability = 0;
  ImageField forwards(options);
  for (std::uint64_t i = 200; i-- > 0;) {
    EXPECT_EQ(encode(all, image, i).mode, ImageMode::jpg);
    EXPECT_EQ(encode(none, image, i).mode, ImageMode::raw);
    EXPECT_EQ(encode(forwards, {{}, image}, i), encode(options, image, i));
  }
}

TEST(ImageField, ReducesTheLongerSideAsFfcvDoes) {
  struct Case {
    int height, width, limit, expected_height, expected_width;
  };
  // Python's results for int(limit / longer * side); 72 / 500 * 375 is 53.99999999999999.
  const Case cases[] = {{300, 400, 0, 300, 400},   {300, 400, 400, 300, 400},
                        {300, 400, 500, 300, 400}, {300, 400, 64, 48, 64},
                        {333, 500, 64, 42, 64},    {500, 375, 72, 72, 53},
                        {1000, 1, 10, 10, 1},      {1, 1000, 10, 1, 10}};
  for (const Case& one : cases) {
    const Stored stored = encode({.mode = ImageWriteMode::raw, .max_resolution_px = one.limit},
                                 gradient(one.height, one.width));
    EXPECT_EQ(stored.height, one.expected_height) << one.height << " x " << one.width;
    EXPECT_EQ(stored.width, one.expected_width) << one.height << " x " << one.width;
    EXPECT_EQ(stored.blob.size(), static_cast<std::size_t>(stored.height * stored.width * 3));
  }
}

TEST(ImageField, KeepsTheBytesOfPlainJpegsWhenAskedTo) {
  const std::vector<std::byte> file = jpeg_file(gradient(40, 60));
  ImageField keep({.passthrough = true});
  EXPECT_EQ(encode(keep, {file, {}}).blob, file);
  EXPECT_EQ(keep.tally(), (Tally{{"jpg", 1}, {"kept_jpeg", 1}}));
  for (const JpegKind kind : {JpegKind::progressive, JpegKind::grey, JpegKind::three_scans}) {
    const std::vector<std::byte> other = jpeg_file(gradient(40, 60), kind);
    EXPECT_EQ(encode(keep, {other, {}}).blob, other);
  }
  ImageField again({});
  EXPECT_NE(encode(again, {file, {}}).blob, file);
  // A JPEG is encoded again if it must be resized, is CMYK, or decodes with a warning. In mode
  // `raw`, no JPEG is kept.
  ImageField smaller({.max_resolution_px = 50, .passthrough = true});
  EXPECT_NE(encode(smaller, {file, {}}).blob, file);
  ImageField pixels({.mode = ImageWriteMode::raw, .passthrough = true});
  EXPECT_EQ(encode(pixels, {file, {}}).mode, ImageMode::raw);
  const std::vector<std::byte> cmyk_jpeg = jpeg_file(gradient(40, 60), JpegKind::cmyk);
  EXPECT_NE(encode(keep, {cmyk_jpeg, {}}).blob, cmyk_jpeg);
  std::vector<std::byte> odd = file;
  ASSERT_EQ(odd[11], std::byte{1});
  odd[11] = std::byte{3};  // The version of JFIF.
  EXPECT_NE(encode(keep, {odd, {}}).blob, odd);
  EXPECT_EQ(keep.tally().at("kept_jpeg"), 4U);
  EXPECT_EQ(keep.tally().at("jpeg_warnings"), 1U);
  const std::vector<std::byte> cut(file.begin(), file.end() - 60);
  EXPECT_THROW(encode(keep, {cut, {}}), DataError);
}

TEST(ImageField, KeepsNoProgressiveJpegThatTheLoaderWouldRefuse) {
  // More scans than the decoder accepts. Its limit bounds the work for a small file.
  std::vector<jpeg_scan_info> scans;
  for (const int bit : {1, 0}) {
    scans.push_back({3, {0, 1, 2}, 0, 0, bit == 0 ? 1 : 0, bit});
    for (int c = 0; c < 3; ++c)
      for (int k = 1; k < 64; ++k) scans.push_back({1, {c}, k, k, bit == 0 ? 1 : 0, bit});
  }
  const Image image = gradient(16, 16);
  const auto file = test::encode_jpeg({image.pixels.begin(), image.pixels.end()}, 16, 16, 3,
                                      [&](jpeg_compress_struct& state) {
                                        state.scan_info = scans.data();
                                        state.num_scans = static_cast<int>(scans.size());
                                      });
  ImageField keep({.passthrough = true});
  EXPECT_THROW(encode(keep, {file, {}}), DataError);
}

TEST(ImageField, CountsWhatItMet) {
  ImageField field({.mode = ImageWriteMode::raw, .max_resolution_px = 30});
  (void)encode(field, {jpeg_file(gradient(40, 60)), {}});
  (void)encode(field, {jpeg_file(gradient(20, 20), JpegKind::grey), {}});
  (void)encode(field, {jpeg_file(gradient(20, 20), JpegKind::cmyk), {}});
  (void)encode(field, {test::png_file(gradient(20, 20)), {}});
  EXPECT_EQ(field.tally(),
            (Tally{{"cmyk", 1}, {"grey", 1}, {"png", 1}, {"raw", 4}, {"resized", 1}}));
  const auto golden = [](const std::string& name, ImageFormat implied_format) {
    return ImageInput{
        test::read_bytes(test::golden_dir() + "/images/files/" + name), {}, implied_format};
  };
  ImageField other({.mode = ImageWriteMode::raw});
  (void)encode(other, golden("lossless_alpha.webp", ImageFormat::webp));
  (void)encode(other, golden("rgb_16.png", ImageFormat::jpeg));
  (void)encode(other, golden("turned_6be.jpg", ImageFormat::png));
  (void)encode(other, golden("turned_1le.jpg", ImageFormat::unknown));
  EXPECT_EQ(other.tally(), (Tally{{"alpha_dropped", 1},
                                  {"exif_rotated", 1},
                                  {"mislabelled", 2},
                                  {"png", 1},
                                  {"raw", 4},
                                  {"sixteen_bit", 1},
                                  {"webp", 1}}));
}

TEST(ImageField, RefusesWrongValuesAndOptions) {
  ImageField field({});
  EncodedValue out;
  EXPECT_THROW(field.encode(std::int64_t{1}, 0, out), DataError);
  EXPECT_THROW(field.encode(ImageInput{}, 0, out), DataError);
  EXPECT_THROW(encode({.mode = ImageWriteMode::raw}, Image(1, 65536)), DataError);
  EXPECT_THROW(ImageField({.jpeg_quality = 0}), ConfigError);
  EXPECT_THROW(ImageField({.jpeg_quality = 101}), ConfigError);
  EXPECT_THROW(ImageField({.max_resolution_px = -1}), ConfigError);
  EXPECT_THROW(ImageField({.compress_probability = 1.5}), ConfigError);
  EXPECT_THROW(ImageField({.compress_probability = std::numeric_limits<double>::quiet_NaN()}),
               ConfigError);
  EXPECT_THROW(ImageField({.mode = ImageWriteMode::smart}), ConfigError);
  const FieldRegistry fields = make_fields();
  EXPECT_THAT([&] { (void)fields.make(test::part_spec("image", "{mode: jpeg}"), {}); },
              testing::ThrowsMessage<ConfigError>(Names("mode", "jpeg", "jpg")));
}

TEST(ImageField, RefusesOptionsThatHaveNoEffectInItsMode) {
  const FieldRegistry fields = make_fields();
  const auto making = [&](const std::string& options) {
    return [&fields, options] { (void)fields.make(test::part_spec("image", options), {}); };
  };
  for (const auto& [options, facts] : std::vector<std::pair<std::string, test::NamesMatcher>>{
           {"{compress_probability: 0.5}", Names("compress_probability", "proportion", "jpg")},
           {"{mode: smart, smart_threshold: 9, compress_probability: 0.5}",
            Names("compress_probability", "proportion", "smart")},
           {"{mode: keep, smart_threshold: 9}", Names("smart_threshold", "smart", "keep")},
           {"{mode: raw, quality: 90}", Names("quality", "jpg", "keep", "raw")},
           {"{mode: raw, passthrough: true}", Names("passthrough", "jpg", "keep", "raw")}})
    EXPECT_THAT(making(options), testing::ThrowsMessage<ConfigError>(facts)) << options;
  for (const char* options :
       {"{mode: raw, max_resolution: 9, passthrough: false}", "{quality: 80, passthrough: true}",
        "{mode: proportion, compress_probability: 0.3, quality: 80, passthrough: true}",
        "{mode: smart, smart_threshold: 9, quality: 80}", "{mode: keep, quality: 80}"})
    EXPECT_NO_THROW(making(options)()) << options;
}

TEST(ImageField, AnEmptyFileIsNamedAsSuch) {
  ImageField field({});
  EncodedValue out;
  EXPECT_THAT([&] { field.encode(ImageInput{}, 0, out); },
              testing::ThrowsMessage<DataError>(Names("empty file")));
}

TEST(NumberFields, StoreTheirNumbersAndRefuseOthers) {
  EncodedValue out;
  IntField integer;
  integer.encode(std::int64_t{-5}, 0, out);
  EXPECT_EQ(load<std::int64_t>(out.metadata.data()), -5);
  EXPECT_TRUE(out.blob.empty());
  EXPECT_THROW(integer.encode(1.5, 0, out), DataError);
  FloatField floating;
  floating.encode(1.5, 0, out);
  EXPECT_EQ(load<double>(out.metadata.data()), 1.5);
  floating.encode(std::int64_t{3}, 0, out);
  EXPECT_EQ(load<double>(out.metadata.data()), 3.0);
  EXPECT_THROW(floating.encode(ImageInput{}, 0, out), DataError);
}

TEST(FieldRegistry, MakesEachFieldByName) {
  const FieldRegistry fields = make_fields();
  const FieldInputs options;
  EXPECT_EQ(fields.make({"image"}, options)->type(), FieldType::image);
  EXPECT_EQ(fields.make({"int"}, options)->type(), FieldType::integer);
  EXPECT_EQ(fields.make({"float"}, options)->type(), FieldType::floating);
  EXPECT_THROW((void)fields.make({"imge"}, options), ConfigError);
}

TEST(ImageField, KeepStoresJpegsAsJpegAndAllElseAsPixels) {
  ImageField field({.mode = ImageWriteMode::keep, .max_resolution_px = 20});
  EncodedValue out;
  field.encode(ImageInput{test::jpeg_file(test::gradient(30, 40)), {}}, 0, out);
  field.encode(ImageInput{test::png_file(test::gradient(30, 40)), {}}, 1, out);
  field.encode(ImageInput{{}, test::gradient(9, 9)}, 2, out);
  EXPECT_EQ(field.tally().at("jpg"), 1U);
  EXPECT_EQ(field.tally().at("raw"), 2U);
}

}  // namespace
}  // namespace precast::data
