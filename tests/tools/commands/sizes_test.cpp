#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/precast_run.h"

namespace precast::tools {
namespace {

using test::Names;
using testing::AllOf;
using testing::HasSubstr;

class SizesTest : public testing::Test {
 protected:
  SizesTest() { test::make_class_tree(folder_ / "tree"); }

  /// Runs a command, which must succeed, and returns its JSON.
  static nlohmann::json json_of(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const test::PrecastRun run = test::precast_run(std::move(arguments));
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(run.out);
  }
  nlohmann::json sizes(std::vector<std::string> options) {
    options.insert(options.begin(), {"sizes", tree_, "--image-size", "16"});
    return json_of(std::move(options));
  }
  /// The mean number of bytes of the images that `precast write` stores with these options.
  double written_bytes(std::vector<std::string> options) {
    const std::string out = (folder_ / "out.beton").string();
    options.insert(options.begin(), {"write", tree_, out});
    EXPECT_EQ(test::precast_run(std::move(options)).code, 0);
    return json_of({"inspect", out})["fields"][0]["blob_bytes"]["mean"];
  }

  test::TemporaryFolder folder_;
  std::string tree_ = (folder_ / "tree").string();
};

TEST_F(SizesTest, SizesOfAllImagesEqualThoseThatWriteMakes) {
  const auto report =
      sizes({"--image.quality", "50,90", "--image.max_resolution", "0,16",
             "--image.compress_probability", "1,0", "--workers", "3", "--images", "1000"});
  EXPECT_EQ(report["measured"], 9);
  ASSERT_EQ(report["ways"].size(), 6U);
  for (const auto& way : report["ways"]) {
    std::vector<std::string> options = {"--image.mode", way["mode"], "--image.max_resolution",
                                        fmt::format("{}", way["max_resolution"].get<int>())};
    if (way["quality"] != 0)
      options.insert(options.end(),
                     {"--image.quality", fmt::format("{}", way["quality"].get<int>())});
    EXPECT_DOUBLE_EQ(way["image_bytes"], written_bytes(options)) << way;
    EXPECT_DOUBLE_EQ(way["gigabytes"], way["image_bytes"].get<double>() * 1000 / 1e9);
    EXPECT_GT(way["gigabytes_error"], 0);
    EXPECT_GT(way["images_per_core_second"], 0);
  }
}

TEST_F(SizesTest, AShareOfJpegsLiesBetweenBothKinds) {
  const auto ways = sizes({"--image.quality", "90", "--image.max_resolution", "0",
                           "--image.compress_probability", "1,0.25,0"})["ways"];
  ASSERT_EQ(ways.size(), 3U);
  EXPECT_EQ(ways[1]["mode"], "proportion 0.25");
  EXPECT_NEAR(
      ways[1]["image_bytes"],
      0.25 * ways[0]["image_bytes"].get<double>() + 0.75 * ways[2]["image_bytes"].get<double>(),
      1e-6);
}

TEST_F(SizesTest, AdvisesTheBestThatFitsAndSaysWhy) {
  // Every machine reaches this target. Of all encodings that fit and have at least 512 px and
  // quality 90, the advice is the smallest.
  const auto easy = sizes({"--ram", "1", "--cores", "2", "--target-img-s", "0.001"})["advice"];
  EXPECT_EQ(easy["fits"], true);
  EXPECT_EQ(easy["keeps_up"], true);
  EXPECT_THAT(easy["command"].get<std::string>(),
              Names("precast write " + tree_, "--image.quality 90"));
  EXPECT_THAT(easy["why"].get<std::string>(), Names("90 %", "1.0 GB", 2));
  const auto small =
      sizes({"--ram", "1", "--images", "1000000000", "--image.max_resolution", "64,8"})["advice"];
  EXPECT_EQ(small["fits"], false);
  // At 8 px, pixels need less space than the header of a JPEG.
  EXPECT_THAT(small["command"].get<std::string>(),
              HasSubstr("--image.mode raw --image.max_resolution 8"));
  EXPECT_EQ(sizes({"--target-img-s", "1e12"})["advice"]["keeps_up"], false);
  const auto run = test::precast_run({"sizes", tree_, "--target-img-s", "1e12", "--count", "2"});
  EXPECT_THAT(run.out, Names("full", "1000000000000", "precast write " + tree_));
}

TEST_F(SizesTest, TheAdvisedCommandIsQuotedAndRepeatsTheSourceKind) {
  const std::string tree = (folder_ / "it's a tree").string();
  std::filesystem::rename(tree_, tree);
  const auto report =
      json_of({"sizes", tree, "--cores", "1", "--source-kind", "folder", "--count", "1",
               "--image-size", "16", "--image.max_resolution", "16", "--image.quality", "90"});
  EXPECT_THAT(
      report["advice"]["command"].get<std::string>(),
      AllOf(HasSubstr("it'\\''s a tree' OUT.beton "), testing::EndsWith(" --source-kind folder")));
}

TEST_F(SizesTest, TheAdvisedCommandHasTheOptionsOfTheSource) {
  std::ofstream(folder_ / "list.csv") << "file,species\ntree/cat/b.jpg,cat\n";
  const auto report = json_of({"sizes", (folder_ / "list.csv").string(), "--cores", "1",
                               "--class-column", "species", "--image-size", "16"});
  EXPECT_THAT(report["advice"]["command"].get<std::string>(),
              testing::EndsWith(" --class-column species"));
}

TEST_F(SizesTest, DamagedImagesAreLeftOutWhenAskedTo) {
  test::put_file(folder_ / "tree" / "cat" / "bad.jpg", std::vector<std::byte>(40, std::byte{'x'}));
  const std::vector<std::string> small = {"--image.max_resolution", "16",
                                          "--image.compress_probability", "0"};
  EXPECT_EQ(test::precast_run({"sizes", tree_, "--image.max_resolution", "16"}).code, 3);
  auto options = small;
  options.insert(options.end(), {"--on-corrupt", "skip"});
  const auto report = sizes(options);
  EXPECT_EQ(report["measured"], 9);
  ASSERT_EQ(report["skipped"].size(), 1U);
  EXPECT_THAT(report["skipped"][0]["name"].get<std::string>(), HasSubstr("bad.jpg"));
}

TEST_F(SizesTest, WrongOptionsAndSourcesAreNamed) {
  using Words = std::vector<std::string>;
  const std::vector<std::pair<Words, Words>> cases = {
      {{"--image.quality", "0"}, {"--image.quality", "1", "100", "0"}},
      {{"--image.max_resolution", "big"}, {"--image.max_resolution", "0", "65535", "big"}},
      {{"--image.compress_probability", "1.5"}, {"--image.compress_probability", "0", "1", "1.5"}},
      {{"--count", "0"}, {"--count", "1", "0"}},
      {{"--ram", "-1"}, {"--ram", "0", "-1"}},
      {{"--source-kind", "tarr"}, {"kind", "tarr", "tar"}},
  };
  for (const auto& [options, facts] : cases) {
    std::vector<std::string> arguments = {"sizes", tree_};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const auto run = test::precast_run(arguments);
    EXPECT_EQ(run.code, 2) << options[0];
    EXPECT_THAT(run.err, test::NamesMatcher(facts));
  }
  const auto numbers = (folder_ / "numbers.beton").string();
  test::write_bytes(numbers, test::golden_beton("scalars_only"));
  const auto run = test::precast_run({"sizes", numbers});
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.err, Names(numbers));
}

TEST_F(SizesTest, SmallDatasetsAreShownInSmallUnits) {
  const auto run =
      test::precast_run({"sizes", tree_, "--count", "2", "--image.max_resolution", "16"});
  EXPECT_THAT(run.out, AllOf(testing::StartsWith("kB "), Names(9)));
}

}  // namespace
}  // namespace precast::tools
