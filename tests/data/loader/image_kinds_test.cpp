// Tests image pipelines with all kinds of images: pixels fields and arrays instead of image fields,
// and one channel instead of three.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <span>

#include "data/beton/reader.h"
#include "data/image/luma.h"
#include "data/jobs/write_dataset.h"
#include "data/loader/loader.h"
#include "data/loader/memory_plan.h"
#include "data/loader/outputs.h"
#include "data/write/image_field.h"
#include "data/write/number_fields.h"
#include "data/write/register.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/sample_images.h"
#include "tests/data/transforms/parsed_pipeline.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;
using test::parsed_pipeline;
using testing::ElementsAre;
using testing::ThrowsMessage;
using Bytes = std::vector<std::uint8_t>;

constexpr std::int64_t kSizePx = 24;
const std::string kSteps =
    "[random_resized_crop, horizontal_flip, color_jitter: {brightness: 0.4, contrast: 0.4, "
    "saturation: 0.4, hue: 0.1}, rotate: {degrees: [-20, 20]}]";

Pipeline with_channels(Pipeline pipeline, int channels) {
  Diagnostics diagnostics;
  set_channels(pipeline, channels, {}, diagnostics);
  diagnostics.throw_if_errors();
  return pipeline;
}

/// The outputs of a pass over all samples in file order.
struct PassBytes {
  std::map<std::string, Bytes> bytes;
  std::map<std::string, std::vector<std::int64_t>> shapes;
};

PassBytes pass(const BetonReader& reader, const Pipeline& pipeline, int workers = 2,
               bool normalize = false) {
  LoaderOptions options;
  options.batch_size = 2;
  options.workers = workers;
  options.seed = 11;
  options.normalize = normalize;
  Loader loader(reader, pipeline, options);
  loader.begin_epoch({.epoch = 1, .image_size_px = kSizePx});
  PassBytes all;
  while (const auto batch = loader.next()) {
    for (const HostTensor& field : batch->fields) {
      const auto values = field.values<std::uint8_t>();
      Bytes& to = all.bytes[field.name];
      to.insert(to.end(), values.begin(), values.end());
      all.shapes.try_emplace(field.name, field.shape);
    }
  }
  return all;
}

/// A field and its values.
struct Column {
  std::string name;
  std::string type;
  std::vector<Value> values;
};

/// Writes a dataset with these columns. `mode` says how image fields are stored.
std::filesystem::path write(const std::filesystem::path& path, const std::vector<Column>& columns,
                            ImageWriteMode mode = ImageWriteMode::raw) {
  const FieldRegistry registry = make_fields();
  std::vector<FieldPlan> plans;
  for (const Column& column : columns) {
    plans.push_back({column.name, [&registry, &column, mode]() -> std::unique_ptr<Field> {
                       if (column.type == "image")
                         return std::make_unique<ImageField>(ImageFieldOptions{.mode = mode});
                       FieldInputs inputs;
                       inputs.first = [&column] { return FirstValue{"x", column.values[0]}; };
                       if (const auto* array = std::get_if<ArrayInput>(&column.values[0]))
                         inputs.array = array->format;
                       return registry.make({column.type}, inputs);
                     }});
  }
  (void)write_dataset(path, plans, columns[0].values.size(),
                      [&](std::uint64_t i) {
                        Sample sample{.name = "x", .values = {}};
                        for (const Column& column : columns)
                          sample.values.push_back(column.values[i]);
                        return sample;
                      },
                      {});
  return path;
}

Value file_value(std::vector<std::byte> file) {
  return ImageInput{.file = std::move(file), .pixels = {}};
}

std::vector<Value> labels(std::size_t count) {
  std::vector<Value> values;
  for (std::size_t i = 0; i < count; ++i) values.emplace_back(static_cast<std::int64_t>(i));
  return values;
}

/// Five images of different sizes, each encoded as a file by `encode`.
template <typename Encode>
std::vector<Value> files(Encode encode) {
  std::vector<Value> values;
  for (int i = 0; i < 5; ++i)
    values.push_back(file_value(encode(test::gradient(30 + 7 * i, 64 - 5 * i, i))));
  return values;
}

std::vector<std::byte> golden_file(const std::string& name) {
  return test::read_bytes(test::golden_dir() + "/images/files/" + name);
}

class ImageKindsTest : public ::testing::Test {
 protected:
  /// Writes the same files as an image field stored raw and as a pixels field, and compares their
  /// batches.
  void expect_same(const std::vector<Value>& values, const std::string& note) {
    const auto number = labels(values.size());
    const auto raw =
        write(folder_ / "raw.beton", {{"image", "image", values}, {"label", "int", number}});
    const auto pixels =
        write(folder_ / "pixels.beton", {{"image", "pixels", values}, {"label", "int", number}});
    const BetonReader expected_reader(raw);
    for (const int channels : {3, 1}) {
      const Pipeline pipeline =
          with_channels(parsed_pipeline(fmt::format("{{image: {}, label: , }}", kSteps)), channels);
      const PassBytes expected = pass(expected_reader, pipeline);
      ASSERT_THAT(expected.shapes.at("image"), ElementsAre(2, kSizePx, kSizePx, channels));
      for (const BlobAccess access : {BlobAccess::mapped, BlobAccess::on_disk}) {
        const BetonReader reader(pixels, access);
        for (const int workers : {1, 3})
          EXPECT_EQ(pass(reader, pipeline, workers).bytes, expected.bytes) << note;
      }
    }
  }

  test::TemporaryFolder folder_;
};

TEST_F(ImageKindsTest, PixelsFieldsComeOutAsTheSameImagesInRawImageFields) {
  for (const int channels : {1, 2, 3, 4}) {
    expect_same(files([&](const Image& image) { return test::png_file(image, channels); }),
                fmt::format("{} channels", channels));
  }
  for (const char* name :
       {"grey_1.png", "grey_4.png", "grey_16.png", "grey_alpha_16.png", "grey_8_transparent.png",
        "palette_2.png", "palette_8_transparent.png", "rgb_16.png", "rgba_16_interlaced.png",
        "lossless.webp", "lossless_alpha.webp", "rgb_420.jpg"}) {
    expect_same({file_value(golden_file(name)), file_value(golden_file(name))}, name);
  }
}

TEST_F(ImageKindsTest, AListTakesPixelsOfEightBitsForImagesWhereTheFileHasNone) {
  const auto values = files([](const Image& image) { return test::png_file(image); });
  const auto number = labels(values.size());
  const BetonReader raw(
      write(folder_ / "raw.beton", {{"image", "image", values}, {"label", "int", number}}));
  const BetonReader pixels(
      write(folder_ / "pixels.beton", {{"image", "pixels", values}, {"label", "int", number}}));
  for (const Pipeline& pipeline : {Pipeline(standard_train_pipeline()), parsed_pipeline(kSteps)})
    EXPECT_EQ(pass(pixels, pipeline).bytes, pass(raw, pipeline).bytes);
  // Without transforms, an output contains the stored images. Here they differ in size, which is an
  // error.
  EXPECT_THROW((void)pass(pixels, parsed_pipeline("{image: }")), ConfigError);
}

TEST_F(ImageKindsTest, ArraysOfBytesAreImagesWhereTheRecipeHasTransformsForThem) {
  const Image image = test::gradient(28, 31, 2);
  const auto bytes = std::as_bytes(std::span(image.pixels));
  const Value array =
      ArrayInput{.format = {"|u1", {28, 31, 3}}, .elements = {bytes.begin(), bytes.end()}};
  Bytes plane(28 * 31);
  luma_of(image.pixels.data(), plane.size(), plane.data());
  const auto plane_bytes = std::as_bytes(std::span(plane));
  const Value grey =
      ArrayInput{.format = {"|u1", {28, 31}}, .elements = {plane_bytes.begin(), plane_bytes.end()}};
  const Value file = ImageInput{.file = {}, .pixels = image};
  const BetonReader reader(write(folder_ / "x.beton", {{"a", "image", {file, file}},
                                                       {"b", "ndarray", {array, array}},
                                                       {"c", "ndarray", {grey, grey}},
                                                       {"d", "pixels", {grey, grey}}}));
  const auto one = [&](const std::string& field) {
    return pass(reader,
                parsed_pipeline(fmt::format("{{x: {{field: {}, transforms: {}}}}}", field, kSteps)))
        .bytes.at("x");
  };
  EXPECT_EQ(one("a"), one("b"));
  EXPECT_EQ(one("c"), one("d"));
  EXPECT_NE(one("a"), one("c"));
  EXPECT_THAT(pass(reader, parsed_pipeline("{b: }")).shapes.at("b"), ElementsAre(2, 28, 31, 3));
}

TEST_F(ImageKindsTest, ThePlanOfMemoryCountsArraysThatAreCopied) {
  const auto array = [](const std::vector<std::uint64_t>& shape) -> Value {
    std::size_t bytes = 1;
    for (const std::uint64_t side : shape) bytes *= side;
    return ArrayInput{.format = {"|u1", shape}, .elements = std::vector<std::byte>(bytes)};
  };
  const BetonReader reader(write(folder_ / "x.beton", {{"rgb", "ndarray", {array({28, 31, 3})}},
                                                       {"grey", "ndarray", {array({28, 31})}},
                                                       {"rgba", "tensor", {array({8, 5, 4})}}}));
  LoaderOptions options;
  options.workers = 2;
  options.normalize = false;
  const auto decoders = [&](const std::string& pipeline) {
    return plan_memory(reader, parsed_pipeline(pipeline), options, 16).decoders;
  };
  EXPECT_EQ(decoders("{grey: [center_crop]}"), 2 * 3 * 28 * 31U);
  EXPECT_EQ(decoders("{rgba: [center_crop]}"), 2 * 3 * 8 * 5U);
  EXPECT_EQ(decoders("{rgb: [center_crop]}"), 0U) << "RGB is read in place";
  EXPECT_EQ(decoders("{grey: }"), 0U) << "not an image";
}

TEST_F(ImageKindsTest, OtherArraysAreNoImagesAndPadToIsForStoredPixels) {
  const Value halves =
      ArrayInput{.format = {"<f4", {2, 2, 3}}, .elements = std::vector<std::byte>(48)};
  const Value five =
      ArrayInput{.format = {"|u1", {2, 2, 5}}, .elements = std::vector<std::byte>(20)};
  const Value plane = ArrayInput{.format = {"|u1", {2, 2}}, .elements = std::vector<std::byte>(4)};
  const BetonReader reader(
      write(folder_ / "x.beton",
            {{"f", "pixels", {halves}}, {"g", "ndarray", {five}}, {"h", "pixels", {plane}}}));
  const auto resolve = [&](const std::string& text) {
    return [&reader, text] { (void)resolve_outputs(reader, parsed_pipeline(text), false); };
  };
  EXPECT_THAT(resolve("{f: [center_crop]}"),
              ThrowsMessage<ConfigError>(Names("r.yaml:1", "pipeline.train.f", "pixels <f4")));
  EXPECT_THAT(resolve("{g: [center_crop]}"),
              ThrowsMessage<ConfigError>(Names("pipeline.train.g", "ndarray |u1")));
  EXPECT_THAT(resolve("{h: {transforms: [center_crop], pad_to: [4, 4]}}"),
              ThrowsMessage<ConfigError>(Names("pipeline.train.h", "pad_to")));
}

TEST_F(ImageKindsTest, MasksFollowPixels) {
  const auto images = files([](const Image& image) { return test::png_file(image); });
  std::vector<Value> masks;
  for (int i = 0; i < 5; ++i) {
    const Image image = test::gradient(30 + 7 * i, 64 - 5 * i, i);
    ArrayInput mask{.format = {"|u1",
                               {static_cast<std::uint64_t>(image.height),
                                static_cast<std::uint64_t>(image.width), 1}},
                    .elements = {}};
    for (std::size_t p = 0; p < image.pixels.size(); p += 3)
      mask.elements.push_back(std::byte{image.pixels[p]});
    masks.emplace_back(std::move(mask));
  }
  const auto raw =
      write(folder_ / "a.beton", {{"image", "image", images}, {"mask", "pixels", masks}});
  const auto pixels =
      write(folder_ / "b.beton", {{"image", "pixels", images}, {"mask", "pixels", masks}});
  const Pipeline pipeline = parsed_pipeline(
      "{image: [random_resized_crop, horizontal_flip], mask: {field: mask, geometry_of: image}}");
  const BetonReader raw_reader(raw);
  const PassBytes expected = pass(raw_reader, pipeline);
  for (const BlobAccess access : {BlobAccess::mapped, BlobAccess::on_disk}) {
    const BetonReader reader(pixels, access);
    EXPECT_EQ(pass(reader, pipeline).bytes, expected.bytes);
  }
  std::rotate(masks.begin(), masks.begin() + 1, masks.end());
  const BetonReader wrong(
      write(folder_ / "c.beton", {{"image", "pixels", images}, {"mask", "pixels", masks}}));
  EXPECT_THROW((void)pass(wrong, pipeline), ConfigError);
}

TEST_F(ImageKindsTest, AMaskThatIsAJpegIsRefused) {
  const auto images = files([](const Image& image) { return test::png_file(image); });
  const std::vector<Column> columns = {{"image", "image", images}, {"mask", "image", images}};
  const Pipeline pipeline = parsed_pipeline("{image: , mask: {geometry_of: image}}");
  const BetonReader raw(write(folder_ / "raw.beton", columns));
  EXPECT_NO_THROW((void)pass(raw, pipeline));
  const BetonReader jpegs(write(folder_ / "jpg.beton", columns, ImageWriteMode::jpg));
  EXPECT_THAT([&] { (void)pass(jpegs, pipeline); },
              ThrowsMessage<ConfigError>(Names("sample 0", "'mask'", "JPEG", "raw")));
}

TEST_F(ImageKindsTest, OneChannelIsTheLumaOfTheResizedPixels) {
  const auto values = files([](const Image& image) { return test::png_file(image); });
  const BetonReader reader(write(folder_ / "x.beton", {{"image", "image", values}}));
  const Pipeline plain =
      parsed_pipeline("[random_resized_crop, resize: {filter: antialias}, horizontal_flip]");
  const PassBytes rgb = pass(reader, plain);
  const PassBytes grey = pass(reader, with_channels(plain, 1));
  EXPECT_THAT(grey.shapes.at("image"), ElementsAre(2, kSizePx, kSizePx, 1));
  Bytes expected(rgb.bytes.at("image").size() / 3);
  luma_of(rgb.bytes.at("image").data(), expected.size(), expected.data());
  EXPECT_EQ(grey.bytes.at("image"), expected);
}

TEST_F(ImageKindsTest, JpegsInColourGiveTheirYPlaneAsAGreyJpegDoes) {
  // A JPEG in colour, and the grey JPEG with the same Y coefficients.
  const auto colour = files([](const Image& image) { return test::jpeg_file(image); });
  const BetonReader reader(
      write(folder_ / "colour.beton", {{"image", "image", colour}}, ImageWriteMode::jpg));
  std::vector<Value> planes;
  for (std::uint64_t i = 0; i < reader.size(); ++i) {
    const ImageRecord record = reader.image(i, 0);
    JpegDecoder decoder({.libjpeg_only = true, .luma_only = true});
    const ImageView view = decoder.decode(record.bytes, record.height, record.width,
                                          {0, 0, record.height, record.width});
    Image image(view.height, view.width);
    for (int y = 0; y < view.height; ++y)
      std::copy_n(view.row(y), view.width * 3,
                  image.pixels.data() + std::ptrdiff_t{3} * y * view.width);
    planes.emplace_back(ImageInput{.file = {}, .pixels = std::move(image)});
  }
  const BetonReader grey(write(folder_ / "grey.beton", {{"image", "image", planes}}));
  for (const std::string& steps : {std::string("[random_resized_crop, horizontal_flip]"), kSteps}) {
    const Pipeline pipeline = with_channels(parsed_pipeline(steps), 1);
    for (const int workers : {1, 3})
      EXPECT_EQ(pass(reader, pipeline, workers).bytes, pass(grey, pipeline).bytes);
  }
}

TEST_F(ImageKindsTest, OneChannelIsNormalisedAndHasBothLayouts) {
  const auto values = files([](const Image& image) { return test::png_file(image, 1); });
  const BetonReader reader(write(folder_ / "x.beton", {{"image", "image", values}}));
  const std::string numbers = "normalize: {mean: [100], std: [50]}";
  const auto floats = [&](const std::string& end) {
    const PassBytes all =
        pass(reader, with_channels(parsed_pipeline("[center_crop, " + end + "]"), 1), 2,
             /*normalize=*/true);
    const Bytes& bytes = all.bytes.at("image");
    std::vector<float> out(bytes.size() / 4);
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return std::pair(out, all.shapes.at("image"));
  };
  const Bytes pixels =
      pass(reader, with_channels(parsed_pipeline("[center_crop]"), 1)).bytes.at("image");
  const auto [nhwc, nhwc_shape] = floats(numbers);
  const auto [nchw, nchw_shape] = floats(numbers + ", layout: {order: nchw}");
  EXPECT_THAT(nhwc_shape, ElementsAre(2, kSizePx, kSizePx, 1));
  EXPECT_THAT(nchw_shape, ElementsAre(2, 1, kSizePx, kSizePx));
  EXPECT_EQ(nhwc, nchw);
  ASSERT_EQ(nhwc.size(), pixels.size());
  for (std::size_t i = 0; i < pixels.size(); ++i)
    ASSERT_EQ(nhwc[i], (static_cast<float>(pixels[i]) - 100.0F) / 50.0F);
  // `normalize` without numbers uses ImageNet's constants for luma.
  const auto [standard, shape] = floats("normalize");
  const NormalizeOptions luma = NormalizeOptions::of_luma();
  EXPECT_NEAR(luma.mean.at(0), 255 * (0.299 * 0.485 + 0.587 * 0.456 + 0.114 * 0.406), 1e-9);
  ASSERT_EQ(standard[0], (static_cast<float>(pixels[0]) - static_cast<float>(luma.mean[0])) /
                             static_cast<float>(luma.std[0]));
}

TEST(SetChannels, ReportsWhatDoesNotFitAtItsPlace) {
  const auto errors = [](const std::string& text, int channels,
                         const std::vector<std::string>& inputs = {}) {
    Pipeline pipeline = parsed_pipeline(text);
    Diagnostics diagnostics;
    set_channels(pipeline, channels, inputs, diagnostics);
    return diagnostics.errors();
  };
  const std::string three = "normalize: {mean: [1, 2, 3], std: [1, 2, 3]}";
  EXPECT_THAT(errors("[center_crop, " + three + "]", 3), ElementsAre());
  EXPECT_THAT(errors("[center_crop, " + three + "]", 1),
              ElementsAre(Names("r.yaml:1:22", "pipeline.train[1]", "1 number", 3)));
  EXPECT_THAT(errors("[center_crop, normalize: {mean: [1], std: [1]}]", 3),
              ElementsAre(Names("r.yaml:1:22", "pipeline.train[1]", "3 numbers", 1)));
  EXPECT_THAT(errors("[channels: {count: 1}]", 3),
              ElementsAre(Names("r.yaml:1:9", "pipeline.train[0]", 3, "model.in_channels: 1")));
  EXPECT_THAT(errors("[channels: {count: 1}, normalize]", 1), ElementsAre());
  // Only the model's inputs must have the model's number of channels.
  const std::string two = "{a: [center_crop], b: [center_crop, channels: {count: 1}]}";
  EXPECT_THAT(errors(two, 3), ElementsAre());
  EXPECT_THAT(errors(two, 3, {"a", "b"}), ElementsAre(Names("pipeline.train.b[1]")));
  EXPECT_THAT([&] { (void)parsed_pipeline("[channels: {count: 2}]"); },
              ThrowsMessage<ConfigError>(Names("r.yaml:1:9", "count", 2)));
  EXPECT_THAT([&] { (void)parsed_pipeline("[channels: {count: 1}, " + three + "]"); },
              ThrowsMessage<ConfigError>(Names("pipeline.train[1]", "1 number", 3)));
}

TEST(SetDefaultChannels, ImagesWithoutTheItemAreRgbAndTheOthersKeepTheirNumber) {
  for (const char* text : {"{a: [center_crop], b: [center_crop, channels: {count: 1}]}",
                           "{b: [center_crop, channels: {count: 1}], a: [center_crop]}"}) {
    Pipeline pipeline = parsed_pipeline(text);
    Diagnostics diagnostics;
    set_default_channels(pipeline, diagnostics);
    EXPECT_THAT(diagnostics.errors(), ElementsAre());
    for (const OutputSpec& output : pipeline.outputs)
      EXPECT_EQ(output.image.channels, output.name == "a" ? 3 : 1) << text;
  }
  Pipeline wrong = parsed_pipeline(
      "{b: [channels: {count: 1}], a: [center_crop, normalize: {mean: [1], std: [1]}]}");
  Diagnostics diagnostics;
  set_default_channels(wrong, diagnostics);
  EXPECT_THAT(diagnostics.errors(), ElementsAre(Names("pipeline.train.a[1]", "3 numbers", 1)));
}

}  // namespace
}  // namespace precast::data
