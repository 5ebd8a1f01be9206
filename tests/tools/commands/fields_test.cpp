// Fields for which FFCV has no type, on the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/beton/reader.h"
#include "framework/core/archive/npy.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"
#include "tools/cli/custom_fields.h"

namespace precast::tools {
namespace {

using test::Names;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class FieldsTest : public testing::Test {
 protected:
  FieldsTest() { test::write_bytes(file_, test::golden_beton("custom_w1")); }

  int precast(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), test::bin_dir() + "/precast");
    test::Program program(arguments);
    const int code = program.wait();
    output = program.out;
    error = program.err;
    return code;
  }

  test::TemporaryFolder folder_;
  const std::string file_ = (folder_ / "x.beton").string();
  const std::string out_ = (folder_ / "out.beton").string();
  std::string output;
  std::string error;
};

TEST_F(FieldsTest, InspectShowsACustomFieldWithAGivenLayout) {
  EXPECT_EQ(precast({"inspect", file_}), 3);
  EXPECT_THAT(error, Names("--field-layout boxes=BYTES:ALIGNMENT"));
  ASSERT_EQ(precast({"inspect", file_, "--field-layout", "boxes=10:1", "--field-layout",
                     "point=24:8", "--sample", "1"}),
            0)
      << error;
  const auto sample = nlohmann::json::parse(output);
  EXPECT_EQ(sample["label"], 11);
  EXPECT_EQ(sample["boxes"]["blobs"][0]["bytes"], 32);
  EXPECT_EQ(sample["boxes"]["metadata"].get<std::string>().size(), 20U);
  EXPECT_EQ(precast({"inspect", file_, "--field-layout", "boxes=10:3"}), 2);
}

TEST_F(FieldsTest, InspectTakesOutWhatACustomFieldPointsTo) {
  const data::BetonReader reader(file_, data::BlobAccess::mapped,
                                 {{{"boxes", {10, 1, 0}}, {"point", {24, 8, {}}}}});
  const std::vector<std::string> of_sample = {
      "inspect",    file_,      "--field", "boxes=10:1:0", "--field-layout",
      "point=24:8", "--sample", "1",       "--output"};
  auto arguments = of_sample;
  arguments.push_back((folder_ / "sample").string());
  ASSERT_EQ(precast(arguments), 0) << error;
  const auto blob = reader.blob(1, 1);
  ASSERT_EQ(blob.size(), 32U);
  EXPECT_TRUE(std::ranges::equal(test::read_bytes(folder_ / "sample" / "boxes.bin"), blob));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "sample" / "point.bin"));
  EXPECT_EQ(nlohmann::json::parse(output)["point"]["metadata"].get<std::string>().size(), 48U);
  arguments = of_sample;
  arguments.insert(arguments.end(), {(folder_ / "any").string(), "--field", "boxes"});
  ASSERT_EQ(precast(arguments), 0) << error;
  EXPECT_TRUE(std::ranges::equal(test::read_bytes(folder_ / "any"), blob));
}

TEST_F(FieldsTest, WriteKeepsACustomFieldAndItsLayout) {
  ASSERT_EQ(precast({"write", file_, out_, "--field-layout", "boxes=10:1:0", "--field-layout",
                     "point=24:8"}),
            0)
      << error;
  ASSERT_EQ(precast({"verify", "--deep", out_}), 0) << output;
  EXPECT_EQ(precast({"verify", "--deep", file_}), 3);
  EXPECT_EQ(precast({"verify", "--deep", file_, "--field-layout", "boxes=10:1:0", "--field-layout",
                     "point=24:8"}),
            0)
      << output;
  const std::string some = (folder_ / "some.beton").string();
  ASSERT_EQ(precast({"select", out_, some, "--count", "2", "--seed", "3"}), 0) << error;
  EXPECT_EQ(data::BetonReader(some).blob_bytes(0, 1),
            16 * ((data::BetonReader(some).integer(0, 0) - 10) % 3 + 1));
  const data::BetonReader reader(out_);
  EXPECT_EQ(reader.blob_bytes(1, 1), 32U);
  EXPECT_EQ(reader.integer(1, 0), 11);
}

TEST_F(FieldsTest, EveryCommandThatReadsTakesLayouts) {
  const std::vector<std::string> layouts = {"--field-layout", "boxes=10:1:0", "--field-layout",
                                            "point=24:8"};
  const auto with_layouts = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), layouts.begin(), layouts.end());
    return precast(std::move(arguments));
  };
  EXPECT_EQ(with_layouts({"select", file_, out_, "--samples", "0:2"}), 0) << error;
  EXPECT_EQ(with_layouts({"merge", file_, file_, out_}), 0) << error;
  // The layouts are accepted; these commands fail for other reasons.
  for (const char* command : {"index", "sizes"}) {
    EXPECT_EQ(with_layouts({command, file_}), 3);
    EXPECT_THAT(error, testing::Not(HasSubstr("BYTES:ALIGNMENT"))) << command;
  }
  EXPECT_EQ(with_layouts({"preview", file_, "-o", (folder_ / "x.png").string()}), 3);
  EXPECT_THAT(error, testing::AllOf(Names(file_), testing::Not(HasSubstr("BYTES:ALIGNMENT"))));
  EXPECT_EQ(with_layouts({"write", file_, out_, "--source-kind", "tar"}), 2);
  EXPECT_THAT(error, Names(".beton", "--source-kind"));
}

TEST_F(FieldsTest, WriteMakesPixelsOfImages) {
  const std::string images = (folder_ / "images.beton").string();
  test::write_bytes(images, test::golden_beton("img_raw_w1"));
  ASSERT_EQ(precast({"write", images, out_, "--field-kind", "image=pixels"}), 0) << error;
  const data::BetonReader reader(images);
  const data::ImageRecord image = reader.image(0, 0);
  ASSERT_EQ(precast({"inspect", out_, "--sample", "0"}), 0) << error;
  EXPECT_EQ(nlohmann::json::parse(output)["image"]["shape"],
            nlohmann::json::array({image.height, image.width, 3}));
  const std::string npy = (folder_ / "x.npy").string();
  ASSERT_EQ(precast({"inspect", out_, "--sample", "0", "--field", "image", "--output", npy}), 0)
      << error;
  const NpyArray array = read_npy(npy);
  EXPECT_EQ(array.shape, (std::vector<std::int64_t>{image.height, image.width, 3}));
  EXPECT_TRUE(std::ranges::equal(array.bytes, image.bytes));
  EXPECT_EQ(
      precast({"inspect", out_, "--sample", "0", "--field", "image", "--output", npy + ".bin"}), 2);
}

TEST(TakeLayouts, LeavesTheOtherMeaningsOfTheOption) {
  std::vector<std::string> values = {"image", "a=12:4", "b=pixels", "c=8:8:0", "d="};
  const data::BetonOptions options = take_layouts(values, "--field");
  EXPECT_THAT(values, ElementsAre("image", "b=pixels", "d="));
  EXPECT_EQ(options.layouts.size(), 2U);
  EXPECT_EQ(options.layouts.at("a"), (data::FieldLayout{12, 4, {}}));
  EXPECT_EQ(options.layouts.at("c"), (data::FieldLayout{8, 8, 0}));
  values = {"16:8", "16"};
  EXPECT_TRUE(take_layouts(values, "--field").layouts.empty());
  EXPECT_THAT(values, ElementsAre("16:8", "16"));
  EXPECT_THAT([&] { (void)read_layouts(values, "--field-layout"); },
              ThrowsMessage<ConfigError>(Names("--field-layout", "'16:8'")));
  values = {"a=1:1", "a=2:1"};
  EXPECT_THAT([&] { (void)take_layouts(values, "--field"); },
              ThrowsMessage<ConfigError>(Names("--field", "'a'")));
}

TEST_F(FieldsTest, WrongKindsAndOptionsThatDoNothingAreRefusedBeforeTheWork) {
  const std::string images = (folder_ / "images.beton").string();
  test::write_bytes(images, test::golden_beton("img_raw_w1"));
  EXPECT_EQ(precast({"write", images, out_, "--field-kind", "image=bytes"}), 2);
  EXPECT_THAT(error, Names("--field-kind image=bytes"));
  EXPECT_EQ(precast({"write", images, out_, "--field-kind", "image=pixels",
                     "--image.max_resolution", "9"}),
            2);
  EXPECT_THAT(error, Names("--image.max_resolution", "image=pixels"));
  EXPECT_EQ(precast({"write", images, out_, "--image.compress_probability", "0.5"}), 2);
  EXPECT_THAT(error, Names("--image.compress_probability", "--image.mode", "proportion", "jpg"));
  EXPECT_EQ(precast({"write", images, out_, "--image.mode=raw", "--image.quality=90"}), 2);
  EXPECT_THAT(error, Names("--image.quality", "--image.mode", "jpg", "raw"));
  EXPECT_EQ(precast({"select", images, out_, "--image.mode=raw", "--image.passthrough"}), 2);
  EXPECT_THAT(error, Names("--image.passthrough", "--image.mode", "jpg", "raw"));
  EXPECT_EQ(precast({"select", images, out_, "--image.smart_threshold=9"}), 2);
  EXPECT_THAT(error, Names("--image.smart_threshold", "--image.mode", "smart", "keep"));
  EXPECT_EQ(precast({"write", images, ""}), 2);
  EXPECT_EQ(precast({"write", images, (folder_ / "none" / "x.beton").string()}), 5);
  EXPECT_THAT(error, Names(folder_ / "none" / "x.beton"));
}

TEST_F(FieldsTest, KindsAreDeterminedByTheFirstValidImage) {
  const std::filesystem::path tree = folder_ / "tree";
  test::put_file(tree / "a" / "1.png", {});
  test::put_file(tree / "a" / "2.png", test::png_file(test::gradient(4, 5), 1));
  const std::vector<std::string> write = {"write", tree.string(), out_, "--field-kind",
                                          "image=pixels"};
  EXPECT_EQ(precast(write), 3);
  auto skipping = write;
  skipping.insert(skipping.end(), {"--on-corrupt", "skip"});
  ASSERT_EQ(precast(skipping), 0) << error;
  EXPECT_EQ(data::BetonReader(out_).fields()[0].tag.channels, 1U);
}

TEST_F(FieldsTest, PartsOfACustomFileCanBeJoinedWithTheirOrigin) {
  const std::vector<std::string> told = {"--field-layout", "boxes=10:1:0", "--field-layout",
                                         "point=24:8"};
  std::vector<std::string> select = {"select", file_, out_, "--count", "2"};
  select.insert(select.end(), told.begin(), told.end());
  ASSERT_EQ(precast(select), 0) << error;
  std::vector<std::string> merge = {"merge", out_, file_, (folder_ / "all.beton").string()};
  merge.insert(merge.end(), told.begin(), told.end());
  EXPECT_EQ(precast(merge), 0) << error;
}

}  // namespace
}  // namespace precast::tools
