// Tests batches with several outputs, from a file that FFCV wrote
// (tests/golden/beton/make_masks.py).
#include "data/loader/outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <sstream>

#include "data/beton/dtype.h"
#include "data/loader/loader.h"
#include "data/write/blob_fields.h"
#include "data/write/writer.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/transforms/parsed_pipeline.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;
using test::parsed_pipeline;
using testing::ElementsAre;
using Bytes = std::vector<std::uint8_t>;

constexpr std::int64_t kSizePx = 32;

class OutputsTest : public ::testing::Test {
 protected:
  OutputsTest() {
    test::write_bytes(folder_ / "x.beton", test::golden_beton("masks_w1"));
    reader_.emplace(folder_ / "x.beton");
  }

  struct Setting {
    std::int64_t batch_size = 4;
    int workers = 2;
    bool normalize = false;
    std::int64_t epoch = 1;
    std::uint64_t seed = 3;
  };

  /// The bytes of every output in a complete pass, sample by sample, and the shape of the output in
  /// the first batch.
  struct PassBytes {
    std::map<std::string, Bytes> bytes;
    std::map<std::string, std::vector<std::int64_t>> shapes;
    std::map<std::string, ElementType> types;
    std::vector<std::string> names;
  };
  PassBytes pass(const std::string& pipeline, const Setting& setting) const {
    LoaderOptions options;
    options.batch_size = setting.batch_size;
    options.workers = setting.workers;
    options.seed = setting.seed;
    options.normalize = setting.normalize;
    Loader loader(*reader_, parsed_pipeline(pipeline), options);
    loader.begin_epoch({.epoch = setting.epoch, .image_size_px = kSizePx});
    PassBytes all;
    while (const auto batch = loader.next()) {
      for (const HostTensor& field : batch->fields) {
        const auto values = field.values<std::uint8_t>();
        Bytes& to = all.bytes[field.name];
        to.insert(to.end(), values.begin(), values.end());
        if (!all.shapes.contains(field.name)) all.names.push_back(field.name);
        all.shapes.try_emplace(field.name, field.shape);
        all.types.try_emplace(field.name, field.type);
      }
    }
    return all;
  }
  [[nodiscard]] PassBytes pass(const std::string& pipeline) const { return pass(pipeline, {}); }

  template <typename T>
  static std::vector<T> as(const Bytes& bytes) {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  std::string config_error(const std::string& pipeline) const {
    try {
      static_cast<void>(resolve_outputs(*reader_, parsed_pipeline(pipeline), false));
    } catch (const ConfigError& error) {
      return error.what();
    }
    ADD_FAILURE() << "expected a ConfigError for " << pipeline;
    return "";
  }

  test::TemporaryFolder folder_;
  std::optional<BetonReader> reader_;
};

TEST_F(OutputsTest, AListPutsOutAllFieldsArraysIncluded) {
  const PassBytes all = pass("[whole_image]");
  EXPECT_THAT(all.names,
              ElementsAre("image", "mask", "mask_image", "label", "weight", "vector", "flags"));
  EXPECT_THAT(all.shapes.at("vector"), ElementsAre(4, 3));
  EXPECT_EQ(all.types.at("vector"), ElementType::i16);
  EXPECT_EQ(all.types.at("flags"), ElementType::boolean);
  EXPECT_THAT(all.shapes.at("mask"), ElementsAre(4, 40, 52));
  std::vector<std::int16_t> vectors;
  for (std::int16_t i = 0; i < 6; ++i)
    vectors.insert(vectors.end(),
                   {i, static_cast<std::int16_t>(-i), static_cast<std::int16_t>(300 + i)});
  EXPECT_EQ(as<std::int16_t>(all.bytes.at("vector")), vectors);
  EXPECT_THAT(all.bytes.at("flags"), ElementsAre(1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1));
}

TEST_F(OutputsTest, AMapPutsOutWhatItNames) {
  const PassBytes all = pass(
      "{ids: sample_id, label: [replace_label: {indices: [1, 4], new_label: 9}], w: {field: "
      "weight, "
      "transforms: [convert: {type: f32}]}, picture: {field: image}}");
  EXPECT_THAT(all.names, ElementsAre("ids", "label", "w", "picture"));
  EXPECT_THAT(as<std::int64_t>(all.bytes.at("ids")), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(as<std::int64_t>(all.bytes.at("label")), ElementsAre(0, 9, 2, 0, 9, 2));
  EXPECT_THAT(as<float>(all.bytes.at("w")), ElementsAre(0, 0.25, 0.5, 0.75, 1, 1.25));
  EXPECT_THAT(all.shapes.at("picture"), ElementsAre(4, kSizePx, kSizePx, 3));
}

TEST_F(OutputsTest, ViewsOfAFieldDrawTheirOwnNumbersAndTheFirstThoseOfAList) {
  const std::string steps = "[random_resized_crop, horizontal_flip, brightness: {magnitude: 0.9}]";
  const PassBytes list = pass(steps);
  const PassBytes views = pass("{image: " + steps + ", a: {field: image, transforms: " + steps +
                               "}, b: {field: image, transforms: " + steps + "}}");
  EXPECT_EQ(views.bytes.at("image"), list.bytes.at("image"));
  EXPECT_NE(views.bytes.at("a"), list.bytes.at("image"));
  EXPECT_NE(views.bytes.at("a"), views.bytes.at("b"));
  // Other outputs before `b` do not change `b`.
  const PassBytes fewer =
      pass("{image: [center_crop], b: {field: image, transforms: " + steps + "}}");
  EXPECT_EQ(fewer.bytes.at("b"), views.bytes.at("b"));
}

TEST_F(OutputsTest, AnotherTransformLeavesTheDrawsOfTheRest) {
  // A transform that changes nothing does not affect the random draws of the other transforms,
  // wherever it is in the list.
  const PassBytes plain = pass("[random_resized_crop, horizontal_flip, cutout: {crop_size: 8}]");
  const PassBytes more = pass(
      "[random_resized_crop, horizontal_flip, solarize: {threshold: 256}, cutout: {crop_size: 8}, "
      "posterize: {bits: 8}]");
  EXPECT_EQ(plain.bytes.at("image"), more.bytes.at("image"));
  const PassBytes twice = pass(
      "[random_resized_crop, horizontal_flip, cutout: {crop_size: 8}, cutout: {crop_size: 8}]");
  EXPECT_NE(plain.bytes.at("image"), twice.bytes.at("image"));
}

/// The largest distance in columns between image and mask, over all pixels that are not fill. In
/// both, the first channel is 4 x column.
int columns_apart(const Bytes& image, const Bytes& mask, std::size_t mask_channels) {
  int worst = 0;
  for (std::size_t p = 0; p * mask_channels < mask.size(); ++p) {
    const int value = mask[p * mask_channels];
    if (value == 255 || image[3 * p + 2] == 255) continue;
    worst = std::max(worst, std::abs(value - int{image[3 * p]}) / 4);
  }
  return worst;
}

TEST_F(OutputsTest, AMaskFollowsItsImage) {
  const PassBytes all = pass(
      "{image: [random_resized_crop: {scale: [0.6, 1]}, horizontal_flip, rotate: {degrees: [-40, "
      "40], fill: [255, 255, 255]}, saturation: {magnitude: 0, probability: 1}, vertical_flip, "
      "translate: {padding: 4, fill: [255, 255, 255]}], mask: {geometry_of: image, fill: 255}}");
  EXPECT_THAT(all.shapes.at("mask"), ElementsAre(4, kSizePx, kSizePx));
  EXPECT_EQ(all.types.at("mask"), ElementType::u8);
  const Bytes& mask = all.bytes.at("mask");
  EXPECT_LE(columns_apart(all.bytes.at("image"), mask, 1), 2);
  EXPECT_GT(std::ranges::count(mask, 255), 0);
  EXPECT_GT(std::ranges::count_if(mask, [](int v) { return v > 100 && v < 255; }), 100);
  // The mask contains only values of the stored mask, and the fill value.
  EXPECT_TRUE(std::ranges::all_of(mask, [](int v) { return v % 4 == 0 || v == 255; }));
}

TEST_F(OutputsTest, AMaskFollowsAutomaticAugmentationAndSmallerImages) {
  const PassBytes all = pass(
      "{image: [random_resized_crop: {scale: [0.6, 1]}, col_out, rand_augment: {fill: [0, 0, "
      "255]}], "
      "mask: {geometry_of: image, fill: 255, transforms: [convert: {type: i64}]}}");
  EXPECT_THAT(all.shapes.at("image"), ElementsAre(4, 27, 27, 3));
  EXPECT_THAT(all.shapes.at("mask"), ElementsAre(4, 27, 27));
  const auto values = as<std::int64_t>(all.bytes.at("mask"));
  EXPECT_TRUE(std::ranges::all_of(values, [](auto v) { return v % 4 == 0 || v == 255; }));
}

TEST_F(OutputsTest, AMaskOfAnotherSizeIsNamedWithSampleAndField) {
  const std::string pipeline =
      "{image: [random_resized_crop], m: {field: mask_image, geometry_of: image}}";
  try {
    static_cast<void>(pass(pipeline));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), Names("sample 3", "'mask_image'", "40 x 52", "30 x 52"));
  }
}

TEST_F(OutputsTest, ASampleDoesNotDependOnThreadsNorOnItsBatch) {
  const std::string pipeline =
      "{image: [random_resized_crop, horizontal_flip, rand_augment, trivial_augment, affine: "
      "{degrees: [-9, 9], shear: [-4, 4]}, gaussian_blur: {kernel_size: 5}, color_jitter: {hue: "
      "0.2, contrast: 0.5}, random_erasing: {noise_std: 9}, col_out], view: {field: image, "
      "transforms: [center_crop, translate: {padding: 5}, convert: {type: f32}, normalize]}, mask: "
      "{geometry_of: image}, label: , ids: sample_id}";
  const PassBytes expected = pass(pipeline, {.batch_size = 6, .workers = 1});
  for (const std::int64_t batch_size : {1, 4, 5}) {
    for (const int workers : {1, 3, 8}) {
      EXPECT_EQ(pass(pipeline, {.batch_size = batch_size, .workers = workers}).bytes,
                expected.bytes)
          << batch_size << " " << workers;
    }
  }
  for (const Setting& other : {Setting{.epoch = 2}, Setting{.seed = 4}}) {
    const PassBytes changed = pass(pipeline, other);
    for (const std::string name : {"image", "view", "mask"})
      EXPECT_NE(changed.bytes.at(name), expected.bytes.at(name)) << name;
    EXPECT_EQ(changed.bytes.at("label"), expected.bytes.at("label"));
  }
}

TEST_F(OutputsTest, ConvertAndNormalizeSayWhatComesOut) {
  const Setting cpu{.normalize = true};
  const PassBytes bytes = pass("[center_crop]");
  const Bytes& u8 = bytes.bytes.at("image");
  const auto floats = as<float>(pass("[center_crop, convert: {type: f32}]", cpu).bytes.at("image"));
  ASSERT_EQ(floats.size(), u8.size());
  for (std::size_t i = 0; i < u8.size(); ++i) ASSERT_EQ(floats[i], static_cast<float>(u8[i]));
  const PassBytes open = pass("[center_crop, normalize: {mean: [1, 2, 3], std: [2, 2, 2]}]", cpu);
  EXPECT_EQ(open.types.at("image"), ElementType::f32);
  EXPECT_EQ(as<float>(open.bytes.at("image"))[1], (static_cast<float>(u8[1]) - 2) / 2);
  EXPECT_EQ(pass("[center_crop, convert: {type: u8}]", cpu).bytes.at("image"), u8);
}

TEST_F(OutputsTest, AListThatConvertsImagesToAnotherTypeIsAnError) {
  EXPECT_EQ(pass("[convert: {type: f16}]").types.at("image"), ElementType::f16);
  EXPECT_THAT(config_error("[convert: {type: i64}]"),
              Names("pipeline: image", "pipeline: mask_image", "convert", "i64", reader_->path()));
}

TEST_F(OutputsTest, WhatDoesNotFitTheFileIsReportedAtOnce) {
  std::istringstream errors(config_error(
      "{imge: [center_crop], label: [center_crop], image: [replace_label: {indices: [1], "
      "new_label: "
      "0}], vector: {transforms: [convert: {type: f32}]}}"));
  std::vector<std::string> lines;
  for (std::string line; std::getline(errors, line);) lines.push_back(line);
  EXPECT_THAT(lines, testing::UnorderedElementsAre(
                         Names("r.yaml:1", "pipeline.train.imge", "'imge'", "'image'"),
                         Names("r.yaml:1", "pipeline.train.label", "'label'", "int"),
                         Names("r.yaml:1", "pipeline.train.image", "'image'", "int"),
                         Names("r.yaml:1", "pipeline.train.vector", "'vector'", "ndarray")));
  EXPECT_THAT(config_error("{image: [center_crop], vector: {geometry_of: image}}"),
              Names("pipeline.train.vector", "u8", "tensor", "[H, W]"));
  EXPECT_THAT(config_error("{label: , mask: {geometry_of: label}}"),
              Names("pipeline.train.mask", "geometry_of", "'label'"));
}

TEST_F(OutputsTest, ATransformThatCannotTakeTheSizeStopsThePass) {
  Loader loader(*reader_, parsed_pipeline("[grayscale, cutout: {crop_size: 33}]"), {});
  EXPECT_THROW(loader.begin_epoch({.image_size_px = kSizePx}), ConfigError);
}

TEST(ElementTypeTest, NumpyTypesAreKnown) {
  EXPECT_EQ(element_type_of("<f4"), ElementType::f32);
  EXPECT_EQ(element_type_of("|b1"), ElementType::boolean);
  EXPECT_EQ(element_type_of("<c8"), std::nullopt);
}

/// Writes a file of one sample with an array field of each type.
void write_arrays(const std::filesystem::path& path, const std::vector<std::string>& dtypes) {
  std::vector<FieldColumn> columns;
  std::vector<EncodedValue> values(dtypes.size());
  for (std::size_t i = 0; i < dtypes.size(); ++i) {
    const ArrayFormat format{.dtype = dtypes[i], .shape = {2}};
    ArrayField field(FieldType::ndarray, format);
    columns.push_back({"f" + std::to_string(i), field.type(), field.arguments()});
    field.encode(ArrayInput{format, std::vector<std::byte>(2 * dtype_bytes(dtypes[i]))}, 0,
                 values[i]);
  }
  BetonWriter writer(path, std::move(columns), 1);
  writer.add(values);
  writer.finish();
}

TEST(OutputTypes, AListLeavesOutFieldsThatABatchCannotHold) {
  const test::TemporaryFolder folder;
  write_arrays(folder / "x.beton", {">f4", "<f4", "<c8", "|u1"});
  const BetonReader reader(folder / "x.beton");
  std::vector<std::string> names;
  for (const Output& output : resolve_outputs(reader, {}, false)) names.push_back(output.name);
  EXPECT_THAT(names, ElementsAre("f1", "f3"));
  EXPECT_EQ(unusable_fields(reader), "f0 (ndarray >f4), f2 (ndarray <c8)");
}

TEST(OutputTypes, AFileOfNothingElseIsRefused) {
  const test::TemporaryFolder folder;
  write_arrays(folder / "x.beton", {">i8", "<U5"});
  const BetonReader reader(folder / "x.beton");
  EXPECT_THAT([&] { (void)resolve_outputs(reader, {}, false); },
              testing::ThrowsMessage<ConfigError>(Names("x.beton", "f0", ">i8", "f1", "<U5")));
}

}  // namespace
}  // namespace precast::data
