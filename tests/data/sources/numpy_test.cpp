#include "data/sources/numpy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "data/sources/npy_array.h"
#include "data/sources/register.h"
#include "framework/core/archive/npy.h"
#include "framework/core/archive/zip_file.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/opened.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;
using testing::ThrowsMessage;

const std::filesystem::path kGolden = test::golden_dir() + "/numpy";

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<int>(byte));
  return text;
}

/// Compares a value with NumPy's output for it.
void expect_value(const Value& value, const nlohmann::json& array, std::size_t i,
                  const std::string& name) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    EXPECT_EQ(*integer, array[i].get<std::int64_t>()) << name << i;
  } else if (const auto* floating = std::get_if<double>(&value)) {
    EXPECT_EQ(*floating, std::strtod(array[i].get<std::string>().c_str(), nullptr)) << name << i;
  } else if (const auto* bytes = std::get_if<std::vector<std::byte>>(&value)) {
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()),
              array[i].get<std::string>());
  } else if (const auto* rows = std::get_if<ArrayInput>(&value)) {
    EXPECT_EQ(rows->format.dtype, array["dtype"].get<std::string>()) << name;
    EXPECT_EQ(hex(rows->elements), array["rows"][i].get<std::string>()) << name << i;
    const auto shape = array["shape"].get<std::vector<std::uint64_t>>();
    EXPECT_EQ(rows->format.shape, shape.empty() ? std::vector<std::uint64_t>{1} : shape) << name;
  } else {
    const Image& image = std::get<ImageInput>(value).pixels;
    EXPECT_EQ(hex(std::as_bytes(std::span(image.pixels))), array["rows"][i].get<std::string>());
    EXPECT_EQ(image.height, array["shape"][0]);
    EXPECT_EQ(image.width, array["shape"][1]);
  }
}

TEST(NumpySource, EveryArrayOfAnArchiveIsAFieldOfItsKind) {
  const auto arrays = nlohmann::json::parse(std::ifstream(kGolden / "expected.json"))["arrays"];
  for (const char* file : {"stored.npz", "packed.npz"}) {
    const auto source = open_source(kGolden / file);
    ASSERT_EQ(source->size(), 5U);
    ASSERT_EQ(source->fields().size(), arrays.size());
    EXPECT_EQ(source->fields()[0].name, "image");
    EXPECT_EQ(source->fields()[1].name, "label");
    for (std::size_t i = 0; i < 5; ++i) {
      const Sample sample = source->sample(i);
      for (std::size_t f = 0; f < sample.values.size(); ++f) {
        std::string name = source->fields()[f].name;
        if (f < 2) name = f == 0 ? "train_images" : "train_labels";
        expect_value(sample.values[f], arrays[name], i, name);
      }
    }
    std::map<std::string, std::string> types;
    for (const SourceField& field : source->fields()) types[field.name] = field.type;
    EXPECT_EQ(types["flags"], "int");
    EXPECT_EQ(types["column"], "int");
    EXPECT_EQ(types["f16"], "float");
    EXPECT_EQ(types["texts"], "bytes");
    EXPECT_EQ(types["f16_rows"], "ndarray");
    EXPECT_EQ(types["complex"], "ndarray");
    // `masks` is not one of the names that mark an array as images.
    EXPECT_EQ(types["masks"], "ndarray");
  }
}

TEST(NumpySource, UnsupportedArraysAreRefusedWithAHint) {
  const auto opener = [](const char* file) {
    return [file] { (void)open_source(kGolden / file); };
  };
  EXPECT_THAT(opener("fortran.npy"),
              ThrowsMessage<DataError>(
                  Names(kGolden / "fortran.npy", "fortran_order", "numpy.ascontiguousarray")));
  EXPECT_THAT(opener("big_endian.npy"),
              ThrowsMessage<DataError>(Names(kGolden / "big_endian.npy", "newbyteorder('<')")));
  EXPECT_THAT(opener("objects.npy"),
              ThrowsMessage<DataError>(Names(kGolden / "objects.npy", "'|O'")));
  EXPECT_THAT(opener("unicode.npy"),
              ThrowsMessage<DataError>(Names(kGolden / "unicode.npy", "'<U4'")));
  EXPECT_THAT(opener("record.npy"), ThrowsMessage<DataError>(Names(kGolden / "record.npy")));
  EXPECT_THAT(opener("splits.npz"), ThrowsMessage<DataError>(Names(3, "'x_train'", 2, "'x_test'")));
}

TEST(NumpySource, NumbersOfASizeThatNumpyHasNotAreRefused) {
  const test::TemporaryFolder folder;
  const std::vector<std::byte> file = test::read_bytes(kGolden / "big_endian.npy");
  for (const std::string dtype :
       {"<i100", "<u3", "<i0", "|b4", "<f1", "<f3", "<f5", "<f100", "<c4", "<i16"}) {
    std::string text(reinterpret_cast<const char*>(file.data()), file.size());
    text.replace(text.find(">i4"), 3, dtype);
    text.erase(text.find("}") + 1, dtype.size() - 3);
    std::ofstream(folder / "a.npy") << text;
    EXPECT_THAT([&] { (void)open_source(folder / "a.npy"); },
                ThrowsMessage<DataError>(Names(folder / "a.npy", fmt::format("'{}'", dtype))));
  }
}

/// Writes elements whose bytes count up from 0 (modulo 256).
void put_npy(const std::filesystem::path& path, const std::vector<std::int64_t>& shape,
             DType dtype = DType::u8) {
  std::vector<std::byte> bytes(byte_count(dtype, shape).value());
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  write_npy(path, dtype, shape, bytes);
}

TEST(NumpySource, LabelsAreFoundBesideTheImagesOrByName) {
  const test::TemporaryFolder folder;
  for (const auto& [images, labels] :
       std::vector<std::pair<std::string, std::string>>{{"x_train", "y_train"},
                                                        {"X", "Y"},
                                                        {"fold1_images", "fold1_labels"},
                                                        {"pictures", "pictures_labels"}}) {
    put_npy(folder / (images + ".npy"), {3, 2, 2});
    EXPECT_EQ(open_source(folder / (images + ".npy"))->fields().size(), 1U) << images;
    put_npy(folder / (labels + ".npy"), {3});
    const auto source = open_source(folder / (images + ".npy"));
    ASSERT_EQ(source->fields().size(), 2U) << images;
    EXPECT_EQ(source->fields()[0].name, "image");
    EXPECT_EQ(source->fields()[1].name, "label");
    const Sample sample = source->sample(2);
    EXPECT_EQ(std::get<std::int64_t>(sample.values[1]), 2);
    // Grey values are repeated for all three channels.
    EXPECT_EQ(std::get<ImageInput>(sample.values[0]).pixels.pixels,
              (std::vector<std::uint8_t>{8, 8, 8, 9, 9, 9, 10, 10, 10, 11, 11, 11}));
  }
  put_npy(folder / "features.npy", {3, 4}, DType::f32);
  const auto source =
      open_source(folder / "features.npy", "auto", test::option("labels", folder / "y_train.npy"));
  ASSERT_EQ(source->fields().size(), 2U);
  EXPECT_EQ(source->fields()[0].name, "label");
  EXPECT_EQ(source->fields()[1].name, "array");
  EXPECT_EQ(source->fields()[1].type, "ndarray");
  // An array of labels is not an image field, even if it has the shape of images.
  put_npy(folder / "pictures_labels.npy", {3, 4, 4});
  const auto planes = open_source(folder / "pictures.npy");
  EXPECT_EQ(planes->fields()[0].type, "image");
  EXPECT_EQ(planes->fields()[1].type, "ndarray");
  put_npy(folder / "short.npy", {2});
  EXPECT_THAT(
      [&] {
        (void)open_source(folder / "features.npy", "auto",
                          test::option("labels", folder / "short.npy"));
      },
      ThrowsMessage<DataError>(Names(3, "'array'", 2, "'label'")));
  EXPECT_THROW((void)open_source(kGolden / "stored.npz", "auto",
                                 test::option("labels", folder / "short.npy")),
               ConfigError);
}

/// Writes a .npz. Arrays whose name contains `im` or begins with `x` have the shape of images
/// (uint8); every other array consists of three integers.
void put_npz(const std::filesystem::path& path, const std::vector<std::string>& arrays) {
  const test::TemporaryFolder folder;
  ZipWriter zip(path);
  for (const std::string& name : arrays) {
    const bool image = name.find("im") != std::string::npos || name.starts_with("x");
    put_npy(folder / "a.npy", image ? std::vector<std::int64_t>{3, 2, 2} : std::vector{3L},
            image ? DType::u8 : DType::i64);
    zip.add(name + ".npy", test::read_bytes(folder / "a.npy"));
  }
  zip.finish();
}

TEST(NumpySource, OfSeveralArraysTheBestNameIsTheImageOrTheLabel) {
  using Fields = std::vector<std::string>;
  const test::TemporaryFolder folder;
  const auto fields_of = [&](const Fields& arrays) {
    put_npz(folder / "a.npz", arrays);
    Fields fields;
    const auto source = open_source(folder / "a.npz");
    for (const SourceField& field : source->fields())
      fields.push_back(field.name + ":" + field.chosen_from);
    return fields;
  };
  const std::vector<std::pair<Fields, Fields>> cases = {
      {{"images", "pos_x", "pos_y", "labels"},
       {"image:images", "label:labels", "pos_x:", "pos_y:"}},
      {{"images", "target_size", "labels"}, {"image:images", "label:labels", "target_size:"}},
      {{"images", "key_y", "y_train"}, {"image:images", "label:y_train", "key_y:"}},
      {{"images", "label_source", "label"}, {"image:images", "label:", "label_source:"}},
      {{"images", "y", "label"}, {"image:images", "label:", "y:"}},
      {{"img_mask", "images", "y"}, {"image:images", "label:y", "img_mask:"}},
      {{"images", "pos_y"}, {"image:images", "label:pos_y"}},
      {{"x_train", "image", "Y"}, {"image:", "label:Y", "x_train:"}},
      {{"y", "labels"}, {"label:y", "labels:"}},
      {{"image_right", "image_left", "fine_label", "coarse_label"},
       {"image:image_right", "label:fine_label", "image_left:", "coarse_label:"}},
  };
  for (const auto& [arrays, fields] : cases)
    EXPECT_EQ(fields_of(arrays), fields) << testing::PrintToString(arrays);
}

TEST(NumpySource, ANumberWithoutPlaceInAnIntFieldIsNamedWithItsSample) {
  const test::TemporaryFolder folder;
  std::vector<std::byte> file = test::read_bytes(kGolden / "big_endian.npy");
  std::string text(reinterpret_cast<const char*>(file.data()), file.size());
  text.replace(text.find(">i4"), 3, "<u8");
  text.replace(text.find("(5,)"), 4, "(2,)");
  text.resize(text.size() - 20);
  text += std::string(8, '\1') + std::string(8, '\xff');
  std::ofstream(folder / "y.npy") << text;
  const auto source = open_source(folder / "y.npy");
  EXPECT_EQ(std::get<std::int64_t>(source->sample(0).values[0]), 0x0101010101010101);
  EXPECT_THAT([&] { (void)source->sample(1); },
              ThrowsMessage<DataError>(Names("y.npy[1]", "array", "18446744073709551615")));
}

TEST(NumpySource, DamagedArchivesAreRefused) {
  const test::TemporaryFolder folder;
  for (const char* name : {"stored.npz", "packed.npz"}) {
    const std::vector<std::byte> good = test::read_bytes(kGolden / name);
    for (const double share : {0.0, 0.3, 0.9, 0.999}) {
      test::write_bytes(
          folder / "a.npz",
          {good.begin(),
           good.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(good.size()))});
      EXPECT_THROW((void)open_source(folder / "a.npz"), DataError) << name << share;
    }
    std::vector<std::byte> bad = good;
    bad[good.size() / 3] ^= std::byte{1};
    test::write_bytes(folder / "a.npz", bad);
    EXPECT_THROW((void)open_source(folder / "a.npz"), DataError) << name;
  }
}

TEST(NpyArray, ASingleNumberIsAnArrayOfOne) {
  const test::TemporaryFolder folder;
  put_npy(folder / "a.npy", {}, DType::f32);
  EXPECT_EQ(npy_array(test::read_bytes(folder / "a.npy"), "a").format.shape,
            (std::vector<std::uint64_t>{1}));
  std::vector<std::byte> file = test::read_bytes(folder / "a.npy");
  file.pop_back();
  EXPECT_THAT([&] { (void)npy_array(file, "a"); },
              ThrowsMessage<DataError>(Names("a", "[] of <f4", 3)));
}

}  // namespace
}  // namespace precast::data
