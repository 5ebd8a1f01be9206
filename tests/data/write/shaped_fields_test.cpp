// Tests images other than 8-bit RGB, and ragged arrays. Pillow wrote the PNG files, except that
// OpenCV wrote the 16-bit RGBA file.
#include "data/write/shaped_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string_view>

#include "data/beton/reader.h"
#include "data/jobs/write_dataset.h"
#include "data/sources/beton.h"
#include "data/write/png_pixels.h"
#include "data/write/register.h"
#include "framework/core/error.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;
using testing::ElementsAre;
using testing::ThrowsMessage;

std::vector<std::byte> from_hex(std::string_view hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

template <typename T>
std::vector<T> values_of(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// [2, 3] pixels; pixel i is 10007 i + 258.
constexpr std::string_view kGrey16 =
    "89504e470d0a1a0a0000000d4948445200000003000000021000000000e88fe585000000164944415478da636464"
    "521757176729755517571707000a6401bb32f7c65b0000000049454e44ae426082";
/// [2, 2, 4] values; value i is 4000 i + 77.
constexpr std::string_view kRgba16 =
    "89504e470d0a1a0a0000000d49484452000000020000000210060000002226d1670000002a49444154081d6364f0"
    "e57f2bdfabaf6bd760df60df60d7c058ebdbf3764eef1a5dbb06fb06fb06bb0600c6100c8d77be9ba80000000049"
    "454e44ae426082";
/// Three colours: red, green, and blue with the value 7.
constexpr std::string_view kPalette =
    "89504e470d0a1a0a0000000d4948445200000003000000010203000000668efc2700000009504c5445ff000000ff"
    "000000079e2cb7a40000000a4944415478da63900000001a001980008ebb0000000049454e44ae426082";
/// The same colours; the second one is transparent.
constexpr std::string_view kTransparent =
    "89504e470d0a1a0a0000000d4948445200000003000000010203000000668efc2700000009504c5445ff000000ff"
    "000000079e2cb7a40000000274524e53ff00e5b7304a0000000a4944415478da63900000001a001980008ebb0000"
    "000049454e44ae426082";
/// One bit per pixel: 0, 1, 0, 1.
constexpr std::string_view kOneBit =
    "89504e470d0a1a0a0000000d4948445200000004000000010100000000d14732600000000a4944415478da630800"
    "00005200515aa9a33a0000000049454e44ae426082";

TEST(PngPixels, KeepChannelsAndDepth) {
  const ArrayInput grey = png_pixels(from_hex(kGrey16));
  EXPECT_EQ(grey.format, (ArrayFormat{"<u2", {2, 3, 1}}));
  EXPECT_THAT(values_of<std::uint16_t>(grey.elements),
              ElementsAre(258, 10265, 20272, 30279, 40286, 50293));
  const ArrayInput rgba = png_pixels(from_hex(kRgba16));
  EXPECT_EQ(rgba.format, (ArrayFormat{"<u2", {2, 2, 4}}));
  const auto values = values_of<std::uint16_t>(rgba.elements);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(values[i], 4000 * i + 77);
}

TEST(PngPixels, WidenPalettesAndFewBits) {
  const ArrayInput colours = png_pixels(from_hex(kPalette));
  EXPECT_EQ(colours.format, (ArrayFormat{"|u1", {1, 3, 3}}));
  EXPECT_THAT(values_of<std::uint8_t>(colours.elements),
              ElementsAre(255, 0, 0, 0, 255, 0, 0, 0, 7));
  const ArrayInput transparent = png_pixels(from_hex(kTransparent));
  EXPECT_THAT(values_of<std::uint8_t>(transparent.elements),
              ElementsAre(255, 0, 0, 255, 0, 255, 0, 0, 0, 0, 7, 255));
  const ArrayInput bits = png_pixels(from_hex(kOneBit));
  EXPECT_EQ(bits.format, (ArrayFormat{"|u1", {1, 4, 1}}));
  EXPECT_THAT(values_of<std::uint8_t>(bits.elements), ElementsAre(0, 255, 0, 255));
}

TEST(PngPixels, RefuseDamagedFiles) {
  std::vector<std::byte> file = from_hex(kGrey16);
  for (const std::size_t size : {0, 8, 20, 60, 70}) {
    const auto cut = std::vector(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THAT([&] { (void)png_pixels(cut); }, ThrowsMessage<DataError>(Names("PNG"))) << size;
  }
  file[50] ^= std::byte{1};
  EXPECT_THAT([&] { (void)png_pixels(file); }, ThrowsMessage<DataError>(Names("PNG")));
}

/// Like `precast write`: writes a file with one field of this kind, described by its first value.
void write(const std::filesystem::path& path, const std::string& kind,
           const std::vector<Value>& values) {
  FieldRegistry registry("field");
  register_fields(registry);
  FieldInputs options;
  options.first = [&] { return FirstValue{"first", values[0]}; };
  (void)write_dataset(path, {{"x", [&] { return registry.make({kind}, options); }}}, values.size(),
                      [&](std::uint64_t i) {
                        return Sample{"x", {values[i]}};
                      },
                      {});
}

TEST(PixelsField, ReadsBackWhatWasWrittenOfAnySize) {
  const test::TemporaryFolder folder;
  const std::vector<std::uint16_t> small = {7, 65535};
  write(folder / "x.beton", "pixels",
        {ImageInput{from_hex(kGrey16), {}}, ArrayInput{{"<u2", {2, 1}}, bytes_of(small)},
         ArrayInput{{"<u2", {1, 2, 1}}, bytes_of(small)}});
  const BetonReader reader(folder / "x.beton");
  const FieldInfo& field = reader.fields()[0];
  EXPECT_EQ(field.type, FieldType::bytes);
  EXPECT_EQ(field.tag, (FieldTag{.kind = FieldTag::Kind::pixels, .dtype = "<u2", .channels = 1}));
  std::vector<std::uint64_t> extents;
  EXPECT_THAT(values_of<std::uint16_t>(shaped_elements(field.tag, reader.blob(0, 0), extents)),
              ElementsAre(258, 10265, 20272, 30279, 40286, 50293));
  EXPECT_THAT(extents, ElementsAre(2, 3, 1));
  EXPECT_THAT(values_of<std::uint16_t>(shaped_elements(field.tag, reader.blob(1, 0), extents)),
              ElementsAre(7, 65535));
  EXPECT_THAT(extents, ElementsAre(2, 1, 1));
}

TEST(PixelsField, TakesOtherImagesAsRgbAndRefusesWhatTheFirstOneIsNot) {
  const test::TemporaryFolder folder;
  const Image image = test::gradient(4, 5);
  write(folder / "x.beton", "pixels",
        {ImageInput{{}, image}, ImageInput{test::jpeg_file(image), {}},
         ImageInput{test::png_file(image), {}}});
  const BetonReader reader(folder / "x.beton");
  std::vector<std::uint64_t> extents;
  for (const std::uint64_t i : {0, 2}) {
    EXPECT_EQ(values_of<std::uint8_t>(
                  shaped_elements(reader.fields()[0].tag, reader.blob(i, 0), extents)),
              image.pixels);
  }
  EXPECT_THAT(
      [&] {
        write(folder / "y.beton", "pixels",
              {ImageInput{{}, image}, ImageInput{test::png_file(image, 4), {}}});
      },
      ThrowsMessage<Error>(Names("pixels field", 3, 4, "|u1")));
  EXPECT_THAT([&] { write(folder / "y.beton", "pixels", {std::int64_t{3}}); },
              ThrowsMessage<DataError>(Names("pixels field")));
  EXPECT_THAT(
      [&] {
        write(folder / "y.beton", "pixels",
              {ArrayInput{{"<f4", {1, 1, 9}}, bytes_of(std::vector<float>(9))}});
      },
      ThrowsMessage<ConfigError>(Names(1, 4, 9)));
}

TEST(PixelsField, AFirstValueThatIsNoneIsNamedWithItsSample) {
  const test::TemporaryFolder folder;
  EXPECT_THAT([&] { write(folder / "x.beton", "pixels", {std::int64_t{3}}); },
              ThrowsMessage<Error>(Names("first")));
}

TEST(RaggedField, ReadsBackArraysOfAnyShapeEmptyOnesToo) {
  const test::TemporaryFolder folder;
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
  write(folder / "x.beton", "ragged",
        {ArrayInput{{"<f4", {3, 2}}, bytes_of(numbers)}, ArrayInput{{"<f4", {0, 4}}, {}},
         ArrayInput{{"<f4", {1, 6}}, bytes_of(numbers)}});
  // Writes the values again. The source is the written file, which contains the field's tag.
  const auto source = open_beton(folder / "x.beton");
  EXPECT_EQ(source->fields()[0].type, "ragged");
  const std::vector<Value> values = {source->sample(0).values[0], source->sample(1).values[0],
                                     source->sample(2).values[0]};
  write(folder / "y.beton", "ragged", values);
  const BetonReader reader(folder / "y.beton");
  std::vector<std::uint64_t> extents;
  const FieldTag& tag = reader.fields()[0].tag;
  EXPECT_EQ(values_of<float>(shaped_elements(tag, reader.blob(0, 0), extents)), numbers);
  EXPECT_THAT(extents, ElementsAre(3, 2));
  EXPECT_TRUE(shaped_elements(tag, reader.blob(1, 0), extents).empty());
  EXPECT_THAT(extents, ElementsAre(0, 4));
  EXPECT_THAT(
      [&] {
        write(folder / "z.beton", "ragged",
              {values[0], ArrayInput{{"<f4", {6}}, bytes_of(numbers)}});
      },
      ThrowsMessage<Error>(Names("ragged field", 2, "<f4", 1)));
}

TEST(ShapedElements, NeverLeaveTheirBytes) {
  const FieldTag pixels{.kind = FieldTag::Kind::pixels, .dtype = "<u2", .channels = 3};
  const FieldTag ragged{.kind = FieldTag::Kind::ragged, .dtype = "<f8", .dims = 2};
  std::vector<std::uint64_t> extents;
  const auto refused = [&](const FieldTag& tag, const std::vector<std::byte>& blob) {
    EXPECT_THAT([&] { (void)shaped_elements(tag, blob, extents); },
                ThrowsMessage<DataError>(Names(tag.dtype, blob.size())));
  };
  refused(pixels, {});
  refused(pixels, bytes_of<std::uint32_t>({0, 1}));
  refused(pixels, bytes_of<std::uint32_t>({1, 1}));
  refused(pixels, bytes_of<std::uint32_t>({0xffffffff, 0xffffffff, 0, 0}));
  refused(ragged, bytes_of<std::uint64_t>({1}));
  refused(ragged, bytes_of<std::uint64_t>({1, 2, 3}));
  refused(ragged, bytes_of<std::uint64_t>({0, 2, 3}));
  // In 64-bit arithmetic, 2^61 x 8 x 1 bytes overflow to 0.
  refused(ragged, bytes_of<std::uint64_t>({std::uint64_t{1} << 61, 1}));
}

TEST(FieldTags, AreReadAsTheyWereWrittenAndRefusedIfDamaged) {
  for (const FieldTag& tag :
       {FieldTag{.kind = FieldTag::Kind::pixels, .dtype = "|u1", .channels = 4},
        FieldTag{.kind = FieldTag::Kind::ragged, .dtype = "<f2", .dims = 32},
        FieldTag{.kind = FieldTag::Kind::custom, .layout = {24, 8, 16}}}) {
    std::vector<std::byte> arguments(100, std::byte{5});
    put_tag(tag, arguments);
    EXPECT_EQ(arguments.size(), kFieldArgumentsBytes);
    EXPECT_EQ(arguments[99], std::byte{5});
    EXPECT_EQ(parse_tag(arguments.data(), "x"), tag);
    // If a letter of the magic is changed, there is no tag. If another letter is changed, there is
    // no tag, a different tag, or an error.
    for (std::size_t i = kTagAt; arguments[i] != std::byte{0}; ++i) {
      auto damaged = arguments;
      damaged[i] ^= std::byte{2};
      try {
        EXPECT_NE(parse_tag(damaged.data(), "x"), tag);
      } catch (const DataError& error) {
        EXPECT_THAT(error.what(), Names("x"));
      }
    }
  }
  // A new tag completely replaces a longer one.
  const FieldTag lesser{.kind = FieldTag::Kind::pixels, .dtype = "|u1", .channels = 1};
  std::vector<std::byte> used;
  put_tag({.kind = FieldTag::Kind::custom, .layout = {1024, 8, 1016}}, used);
  put_tag(lesser, used);
  EXPECT_EQ(parse_tag(used.data(), "x"), lesser);
  std::vector<std::byte> clean;
  put_tag(lesser, clean);
  EXPECT_EQ(used, clean);
  std::vector<std::byte> arguments(kFieldArgumentsBytes);
  EXPECT_EQ(parse_tag(arguments.data(), "x"), FieldTag{});
  const auto with_text = [&](std::string_view text) {
    std::fill(arguments.begin(), arguments.end(), std::byte{});
    std::memcpy(arguments.data() + kTagAt, text.data(), text.size());
    return parse_tag(arguments.data(), "x");
  };
  EXPECT_EQ(with_text(R"(PCFIELD1{"kind":"of later versions"})"), FieldTag{});
  for (const char* bad :
       {"PCFIELD1", "PCFIELD1[]", R"(PCFIELD1{"kind":1})", R"(PCFIELD1{"kind":"pixels"})",
        R"(PCFIELD1{"kind":"pixels","dtype":"<u2","channels":-1})",
        R"(PCFIELD1{"kind":"ragged","dtype":7,"dims":1})",
        R"(PCFIELD1{"kind":"custom","bytes":4,"alignment":3})"}) {
    EXPECT_THAT([&] { (void)with_text(bad); }, ThrowsMessage<DataError>(Names("x"))) << bad;
  }
}

}  // namespace
}  // namespace precast::data
