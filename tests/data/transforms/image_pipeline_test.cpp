#include "data/transforms/image_pipeline.h"

#include <gtest/gtest.h>

namespace precast::data {
namespace {

struct Parsed {
  ImagePipeline pipeline;
  std::vector<std::string> errors;
};

Parsed parse(const std::string& list) {
  Diagnostics diagnostics;
  CropRegistry crops("crop");
  register_crops(crops);
  const ConfigNode file = parse_yaml("train: " + list + "\n", "r.yaml", diagnostics);
  Parsed parsed{parse_image_pipeline(*file.find("train"), "pipeline.train", crops,
                                     standard_train_pipeline(), diagnostics),
                {}};
  parsed.errors = diagnostics.errors();
  return parsed;
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
  const auto only_error = [](const std::string& list) {
    const Parsed parsed = parse(list);
    EXPECT_EQ(parsed.errors.size(), 1U) << list;
    return parsed.errors.empty() ? "" : parsed.errors[0];
  };
  EXPECT_EQ(only_error("[center_corp]"),
            "r.yaml:1:9: pipeline.train[0]: unknown transform 'center_corp'. Did you mean "
            "'center_crop'?");
  EXPECT_NE(only_error("[horizontal_flip, center_crop]").find("out of order"), std::string::npos);
  EXPECT_NE(only_error("[center_crop, whole_image]").find("out of order"), std::string::npos);
  EXPECT_NE(only_error("[center_crop: {ratio: 2}]").find("expected number <= 1, got '2'"),
            std::string::npos);
  EXPECT_NE(only_error("[center_crop: {ration: 1}]").find("Did you mean 'ratio'?"),
            std::string::npos);
  EXPECT_NE(only_error("[random_resized_crop: {scale: [0.5]}]")
                .find("scale: expected [smallest, largest]"),
            std::string::npos);
  EXPECT_NE(only_error("[random_resized_crop: {scale: [0.5, 0.1]}]").find("scale: expected"),
            std::string::npos);
  EXPECT_NE(only_error("[normalize: {std: [1, 0, 1]}]").find("std above 0"), std::string::npos);
  EXPECT_NE(only_error("[[center_crop]]").find("expected a name"), std::string::npos);
  EXPECT_NE(only_error("center_crop").find("expected a list"), std::string::npos);
}

}  // namespace
}  // namespace precast::data
