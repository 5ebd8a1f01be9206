#include "data/transforms/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/message_matchers.h"

namespace precast::data {
namespace {

using test::Names;
using testing::ElementsAre;

struct Parsed {
  Pipeline all;
  /// The pipeline, if the text is a list.
  ImagePipeline pipeline;
  std::vector<std::string> errors;
};

/// Parses `text` as the value of `train:`.
Parsed parse(const std::string& text) {
  Diagnostics diagnostics;
  TransformRegistries registries;
  register_transforms(registries);
  const ConfigNode file = parse_yaml("train: " + text + "\n", "r.yaml", diagnostics);
  Parsed parsed;
  parsed.all = parse_pipeline(*file.find("train"), "pipeline.train", registries,
                              standard_train_pipeline(), diagnostics);
  parsed.pipeline = parsed.all.images;
  parsed.errors = diagnostics.errors();
  return parsed;
}

std::vector<std::string> keys(const ImagePipeline& pipeline) {
  std::vector<std::string> all;
  for (const PipelineStep& step : pipeline.steps) all.push_back(step.random_key);
  return all;
}

std::string only_error(const std::string& text) {
  const Parsed parsed = parse(text);
  EXPECT_EQ(parsed.errors.size(), 1U) << text << testing::PrintToString(parsed.errors);
  return parsed.errors.empty() ? "" : parsed.errors[0];
}

struct Unprepared final : LabelTransform {
  void prepare() override { throw ConfigError("no file"); }
  [[nodiscard]] std::int64_t apply(std::int64_t label, std::uint64_t /*sample*/) const override {
    return label;
  }
};

TEST(ImagePipelineTest, AnErrorOfPrepareHasThePlaceOfTheTransform) {
  Diagnostics diagnostics;
  TransformRegistries registries;
  register_transforms(registries);
  registries.labels.add("unprepared", "", [] { return std::make_unique<Unprepared>(); });
  const ConfigNode file = parse_yaml("train: {label: [unprepared]}\n", "r.yaml", diagnostics);
  (void)parse_pipeline(*file.find("train"), "pipeline.train", registries, standard_train_pipeline(),
                       diagnostics);
  ASSERT_EQ(diagnostics.errors().size(), 1U);
  EXPECT_THAT(diagnostics.errors()[0], Names("r.yaml:1:17", "pipeline.train.label[0]", "no file"));
}

TEST(ImagePipelineTest, AnEmptyListMeansTheStandard) {
  EXPECT_EQ(parse("[]").pipeline.flip_probability, 0.5);
  EXPECT_EQ(parse("").pipeline.flip_probability, 0.5);
}

TEST(ImagePipelineTest, ReadsOptions) {
  const Parsed parsed = parse(
      "[center_crop: {ratio: 0.5}, horizontal_flip: {probability: 0.25}, normalize: {mean: [1, 2, "
      "3]}]");
  EXPECT_TRUE(parsed.errors.empty());
  RandomStream random(0, 0, 0, RandomUse::crop);
  EXPECT_EQ(parsed.pipeline.crop->choose(100, 100, random), (Rect{25, 25, 50, 50}));
  EXPECT_EQ(parsed.pipeline.flip_probability, 0.25);
  EXPECT_EQ(parsed.pipeline.normalize.mean, (std::vector<double>{1, 2, 3}));
}

TEST(ImagePipelineTest, AListWithoutFlipDoesNotFlip) {
  EXPECT_EQ(parse("[whole_image]").pipeline.flip_probability, 0);
}

TEST(ImagePipelineTest, MistakesAreNamedWithTheirPlace) {
  EXPECT_THAT(only_error("[center_corp]"),
              Names("r.yaml:1:9", "pipeline.train[0]", "'center_corp'", "'center_crop'"));
  EXPECT_THAT(only_error("[horizontal_flip, center_crop]"),
              Names("r.yaml:1:26", "pipeline.train[1]", "'center_crop'"));
  EXPECT_THAT(only_error("[center_crop, whole_image]"),
              Names("r.yaml:1:22", "pipeline.train[1]", "'whole_image'"));
  EXPECT_THAT(only_error("[center_crop: {ratio: 2}]"),
              Names("pipeline.train[0].ratio", "<= 1", "'2'"));
  EXPECT_THAT(only_error("[center_crop: {ration: 1}]"),
              Names("pipeline.train[0].ration", "'ratio'"));
  EXPECT_THAT(only_error("[random_resized_crop: {scale: [0.5]}]"),
              Names("pipeline.train[0]", "scale", "[0.5]"));
  EXPECT_THAT(only_error("[random_resized_crop: {scale: [0.5, 0.1]}]"),
              Names("pipeline.train[0]", "scale", "[0.5, 0.1]"));
  EXPECT_THAT(only_error("[normalize: {std: [1, 0, 1]}]"),
              Names("pipeline.train[0]", "mean", "std", "[1, 0, 1]"));
  EXPECT_THAT(only_error("[normalize: {mean: [1, 2], std: [3]}]"),
              Names("pipeline.train[0]", "[1, 2]", "[3]"));
  EXPECT_THAT(only_error("[[center_crop]]"), Names("r.yaml:1:9", "pipeline.train[0]"));
  EXPECT_THAT(only_error("center_crop"), Names("r.yaml:1:8", "pipeline.train", "list"));
}

TEST(ImagePipelineTest, NormalizeRejectsNumbersForPixelsUpToOne) {
  // torchvision's and timm's numbers, in whole or in part.
  EXPECT_THAT(
      only_error("[normalize: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}]"),
      Names("r.yaml:1:9", "pipeline.train[0]", "[0.485, 0.456, 0.406]", "[0.229, 0.224, 0.225]",
            "255", "mean: [123.675, 116.28, 103.53]", "std: [58.395, 57.12, 57.375]"));
  EXPECT_THAT(only_error("[normalize: {mean: [0, 0, 0], std: [0.5, 0.5, 0.5]}]"),
              Names("pipeline.train[0]", "mean: [0, 0, 0]", "std: [127.5, 127.5, 127.5]"));
  EXPECT_THAT(only_error("[normalize: {mean: [0.5]}]"),
              Names("pipeline.train[0]", "mean: [127.5]"));
  EXPECT_THAT(only_error("[normalize: {std: [0.5, 1, 1]}]"),
              Names("pipeline.train[0]", "std: [127.5, 255, 255]"));
  for (const std::string numbers :
       {"mean: [0, 0, 0], std: [1, 1, 1]", "std: [1, 1, 1]",
        "mean: [0, 0, 0], std: [255, 255, 255]", "mean: [0.5, 0.5, 0.5], std: [128, 128, 128]",
        "mean: [1.5, 0, 0], std: [0.5, 0.5, 0.5]"})
    EXPECT_THAT(parse("[normalize: {" + numbers + "}]").errors, ElementsAre()) << numbers;
}

TEST(ImagePipelineTest, TransformsStandInAnyOrderBetweenCropAndConversion) {
  const Parsed parsed = parse(
      "[random_resized_crop, resize: {filter: antialias}, horizontal_flip, grayscale, rotate: "
      "{degrees: [-5, 5]}, horizontal_flip, grayscale, layout: {order: nchw}, normalize, convert: "
      "{type: f16}]");
  EXPECT_THAT(parsed.errors, ElementsAre());
  EXPECT_EQ(parsed.pipeline.flip_probability, 0.5);
  EXPECT_EQ(parsed.pipeline.filter, ResizeFilter::antialias);
  EXPECT_THAT(keys(parsed.pipeline),
              ElementsAre("grayscale/0", "rotate/0", "horizontal_flip/0", "grayscale/1"));
  EXPECT_EQ(parsed.pipeline.type, ElementType::f16);
  EXPECT_TRUE(parsed.pipeline.normalized);
  EXPECT_TRUE(parsed.pipeline.channels_first);
}

TEST(ImagePipelineTest, AnotherTransformLeavesTheKeysOfTheRest) {
  EXPECT_THAT(keys(parse("[solarize, grayscale]").pipeline),
              ElementsAre("solarize/0", "grayscale/0"));
  EXPECT_THAT(keys(parse("[grayscale, vertical_flip, solarize]").pipeline),
              ElementsAre("grayscale/0", "vertical_flip/0", "solarize/0"));
}

TEST(ImagePipelineTest, AFlipBehindATransformIsATransform) {
  const Parsed parsed = parse("[vertical_flip, horizontal_flip]");
  EXPECT_EQ(parsed.pipeline.flip_probability, 0);
  EXPECT_EQ(parsed.pipeline.steps.size(), 2U);
}

TEST(ImagePipelineTest, MistakesInTransformsAreNamedWithTheirPlace) {
  EXPECT_THAT(only_error("[cutout]"), Names("r.yaml:1:9", "pipeline.train[0].crop_size"));
  EXPECT_THAT(only_error("[grayscale, resize]"), Names("pipeline.train[1]", "'resize'"));
  EXPECT_THAT(only_error("[normalize, grayscale]"), Names("pipeline.train[1]", "'grayscale'"));
  EXPECT_THAT(only_error("[normalize, normalize]"), Names("pipeline.train[1]", "'normalize'"));
  EXPECT_THAT(only_error("[gaussian_blur: {kernel_size: 4}]"),
              Names("pipeline.train[0]", "kernel_size", 4));
  EXPECT_THAT(only_error("[rand_augment: {magnitude: 31}]"),
              Names("pipeline.train[0]", "num_magnitude_bins", 31));
  EXPECT_THAT(only_error("[brightnes: {magnitude: 1}]"),
              Names("pipeline.train[0]", "'brightnes'", "'brightness'"));
  EXPECT_THAT(only_error("[grayscale, convert: {type: u8}, normalize]"),
              Names("pipeline.train[1]", "type", "u8"));
  EXPECT_THAT(only_error("[grayscale, convert: {type: i64}]"), Names("pipeline.train[1]", "i64"));
  EXPECT_THAT(only_error("[poison: {mask: no-such-file.npy, alpha: 0.5, indices: [1]}]"),
              Names("pipeline.train[0]", "no-such-file.npy"));
  for (const std::string alpha : {"nan", "inf", "-0.1", "5"}) {
    EXPECT_THAT(only_error("[poison: {mask: m.npy, alpha: " + alpha + ", indices: [1]}]"),
                Names("pipeline.train[0]", "alpha", alpha));
  }
  EXPECT_THAT(only_error("[replace_label: {indices: [1], new_label: 0}]"),
              Names("pipeline.train", "list"));
}

TEST(ImagePipelineTest, AllMistakesAreReportedAtOnce) {
  EXPECT_EQ(
      parse(
          "[center_corp, cutout, rotate: {degrees: [9, 1]}, hue: {magnitude: 0.1, probability: 2}]")
          .errors.size(),
      4U);
}

TEST(ImagePipelineTest, SizesThatATransformCannotTakeAreReportedOnce) {
  const auto errors_at = [](const std::string& list, std::vector<std::int64_t> sizes) {
    const Parsed parsed = parse(list);
    EXPECT_THAT(parsed.errors, ElementsAre());
    Diagnostics diagnostics;
    check_image_sizes(parsed.all, sizes, diagnostics);
    return diagnostics.errors();
  };
  EXPECT_THAT(errors_at("[cutout: {crop_size: 24}]", {24, 32}), ElementsAre());
  EXPECT_THAT(errors_at("[grayscale, cutout: {crop_size: 33}]", {24, 32, 64}),
              ElementsAre(Names("r.yaml:1:20", "pipeline.train[1]", "crop_size", "24 x 24", 33)));
  // The image after the first transform is too small for the second transform.
  EXPECT_THAT(errors_at("[col_out: {p_row: 0.5, p_col: 0.5}, cutout: {crop_size: 24}]", {32}),
              ElementsAre(Names("pipeline.train[1]", "crop_size", "16 x 16", 24)));
}

TEST(PipelineTest, AMapNamesItsOutputsInOrder) {
  const Parsed parsed = parse(R"(
  image: [random_resized_crop, horizontal_flip, normalize]
  view2: {field: image, transforms: [center_crop, grayscale: {probability: 1}]}
  mask: {field: segments, geometry_of: image, fill: 255, transforms: [convert: {type: i64}]}
  label: [replace_label: {indices: [3], new_label: 0}]
  weight: {transforms: [convert: {type: f32}]}
  vector:
  ids: sample_id)");
  EXPECT_THAT(parsed.errors, ElementsAre());
  const auto& outputs = parsed.all.outputs;
  ASSERT_EQ(outputs.size(), 7U);
  EXPECT_EQ(outputs[0].field, "image");
  EXPECT_EQ(outputs[0].image.flip_probability, 0.5);
  EXPECT_EQ(outputs[1].name, "view2");
  EXPECT_EQ(outputs[1].field, "image");
  EXPECT_EQ(outputs[1].image.flip_probability, 0);
  EXPECT_EQ(outputs[1].image.steps.size(), 1U);
  EXPECT_EQ(outputs[2].geometry_of, "image");
  EXPECT_EQ(outputs[2].fill, 255);
  EXPECT_EQ(outputs[2].type, ElementType::i64);
  EXPECT_EQ(outputs[3].labels.size(), 1U);
  EXPECT_EQ(outputs[4].type, ElementType::f32);
  EXPECT_EQ(outputs[5].field, "vector");
  EXPECT_EQ(outputs[6].field, kSampleId);
}

TEST(PipelineTest, MistakesInAMapAreNamedWithTheirPlace) {
  EXPECT_THAT(only_error("{image: [center_crop], mask: {geometry_of: imag}}"),
              Names("pipeline.train.mask.geometry_of", "'imag'", "'image'"));
  EXPECT_THAT(only_error("{image: [center_crop], mask: {geometry_of: image, transforms: "
                         "[grayscale]}}"),
              Names("pipeline.train.mask.transforms[0]", "'grayscale'", "'image'", "convert"));
  EXPECT_THAT(only_error("{image: [center_crop, hue: {magnitude: 0.1}, augmix], mask: "
                         "{geometry_of: image}}"),
              Names("pipeline.train.mask.geometry_of", "pipeline.train.image[2]", "'image'"));
  EXPECT_THAT(only_error("{ids: sample_id, mask: {geometry_of: ids}}"),
              Names("pipeline.train.mask.geometry_of", "'ids'"));
  EXPECT_THAT(only_error("{image: {fill: 3}}"), Names("pipeline.train.image.fill", "geometry_of"));
  EXPECT_THAT(only_error("{image: {feild: x}}"), Names("pipeline.train.image.feild", "'field'"));
  EXPECT_THAT(only_error("{label: [replace_label: {indices: [1], new_label: 0}, grayscale]}"),
              Names("pipeline.train.label[1]", "'grayscale'"));
  EXPECT_THAT(only_error("{label: [replace_label: {indices: [0.5], new_label: 0}]}"),
              Names("pipeline.train.label[0]", "indices", "0.5"));
  EXPECT_THAT(only_error("{ids: {field: sample_id, transforms: [grayscale]}}"),
              Names("pipeline.train.ids", "sample_id", "convert"));
}

}  // namespace
}  // namespace precast::data
