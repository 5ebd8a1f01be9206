// `precast preview` as a user starts it; other tests check its pixels.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "data/image/image_file.h"
#include "data/order/order.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/precast_run.h"

namespace precast::tools {
namespace {

TEST(PreviewTest, NamesTheOptionThatIsWrong) {
  const test::TemporaryFolder folder;
  const std::string file = test::put_golden_beton(folder.path(), "img_jpg_w3");
  const std::string png = (folder / "x.png").string();
  using Words = std::vector<std::string>;
  const std::vector<std::pair<Words, Words>> cases = {
      {{"--seed=-1"}, {"--seed", "0", "-1"}},
      {{"--epoch=-1"}, {"--epoch", "0", "-1"}},
      {{"--train", "--crop=0:9,0:9"}, {"--train", "--crop"}},
      {{"--train", "--ratio=1"}, {"--train", "--ratio"}},
      {{"--ratio=1", "--crop=0:9,0:9"}, {"--ratio", "--crop"}},
      {{"--pipeline=[center_crop] junk"}, {"--pipeline", "[center_crop] junk"}},
      {{"--pipeline=[random_resized_crop: {scale: [0.5, 2]}]"}, {"scale", "[0.5, 2]"}},
  };
  for (const auto& [options, facts] : cases) {
    std::vector<std::string> arguments = {"preview", file, "-o", png};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const test::PrecastRun run = test::precast_run(arguments);
    EXPECT_EQ(run.code, 2) << options[0];
    EXPECT_THAT(run.err, test::NamesMatcher(facts));
  }
  EXPECT_FALSE(std::filesystem::exists(png));
}

TEST(PreviewTest, TheHelpSaysWhichWindowQuasiRandomHas) {
  const test::PrecastRun run = test::precast_run({"preview", "--help"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out, test::Names("quasi_random", data::OrderOptions{}.window_pages,
                                   "data.shuffle_window_mb"));
}

TEST(PreviewTest, TheImageSizeOfARecipeIsTheDefault) {
  const test::TemporaryFolder folder;
  const std::string file = test::put_golden_beton(folder.path(), "img_jpg_w3");
  const std::string recipe = (folder / "r.yaml").string();
  const std::string png = (folder / "x.png").string();
  const std::string sizes =
      "resolution: {min_res: 24, max_res: 32}\nvalidation: {resolution: 40}\n";
  const std::string resizing = "methods: [progressive_resize: {max_res: 56}]\n";
  const std::string none = "model: {arch: resnet18}\n";
  using Words = std::vector<std::string>;
  const struct {
    std::string recipe;
    Words options;
    int size_px;
  } cases[] = {{sizes, {"--config-file", recipe}, 40},
               {sizes, {"--config-file", recipe, "--train"}, 32},
               {sizes, {"--config-file", recipe, "--image-size", "48"}, 48},
               {sizes, {}, 160},
               {resizing, {"--config-file", recipe, "--train"}, 56},
               {"methods: [progressive_resize]\n", {"--config-file", recipe, "--train"}, 160},
               {none, {"--config-file", recipe}, 224},
               {none, {"--config-file", recipe, "--train"}, 160}};
  for (const auto& [text, options, size_px] : cases) {
    std::ofstream(recipe) << text;
    Words arguments = {"preview", file, "-o", png};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const test::PrecastRun run = test::precast_run(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.err, test::Names(png, fmt::format("{0} x {0} px", size_px)));
  }
}

TEST(PreviewTest, AWrongImageSizeOfARecipeIsNamedByItsKey) {
  const test::TemporaryFolder folder;
  const std::string file = test::put_golden_beton(folder.path(), "img_jpg_w3");
  const std::string recipe = (folder / "r.yaml").string();
  const std::string png = (folder / "x.png").string();
  const struct {
    const char* recipe;
    const char* mode;
    const char* key;
    const char* value;
  } cases[] = {
      {"validation: {resolution: large}\n", "--val", "validation.resolution", "'large'"},
      {"validation: {resolution: 9000}\n", "--val", "validation.resolution", "'9000'"},
      {"resolution: {max_res: 0}\n", "--train", "resolution.max_res", "'0'"},
      {"methods: [blurpool, progressive_resize: {max_res: 9000}]\n", "--train",
       "methods[1].progressive_resize.max_res", "'9000'"},
  };
  for (const auto& [text, mode, key, value] : cases) {
    std::ofstream(recipe) << text;
    const test::PrecastRun run =
        test::precast_run({"preview", file, "-o", png, "--config-file", recipe, mode});
    EXPECT_EQ(run.code, 2) << text;
    EXPECT_THAT(run.err, test::Names(recipe + ":1:", key, value));
  }
  EXPECT_FALSE(std::filesystem::exists(png));
}

TEST(PreviewTest, AnImageHasCaptionsAndAnArrayHasNone) {
  const test::TemporaryFolder folder;
  const std::string file = test::put_golden_beton(folder.path(), "img_jpg_w3");
  const std::string png = (folder / "x.png").string();
  const test::PrecastRun run = test::precast_run(
      {"preview", file, "-o", png, "--samples", "random:4", "--image-size", "100", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out)["samples"].size(), 4U);
  data::Image image;
  (void)data::decode_image_file(test::read_bytes(png), image);
  EXPECT_EQ(image.width, 2 * (100 + 2) + 2);
  EXPECT_EQ(image.height, 2 * (100 + 2 * 9 + 2) + 2);
}

TEST(PreviewTest, LabelsAreThoseOfTheFieldWithClassNames) {
  const test::TemporaryFolder folder;
  const std::string file = (folder / "d.beton").string();
  test::write_int_beton(file, {.fields = {"id", "class"},
                               .rows = {{7, 1}, {8, 0}},
                               .info = {.classes = {{"class", {"cat", "dog"}}}, .written = {}},
                               .images = true});
  const test::PrecastRun run =
      test::precast_run({"preview", file, "-o", (folder / "x.png").string(), "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const nlohmann::json samples = nlohmann::json::parse(run.out)["samples"];
  ASSERT_EQ(samples.size(), 2U);
  for (const nlohmann::json& sample : samples)
    EXPECT_EQ(sample.at("label"), sample.at("sample") == 0 ? 1 : 0);
}

}  // namespace
}  // namespace precast::tools
