// `precast preview` as a user starts it; its pixels other tests look at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/data/beton/golden_beton.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/precast_run.h"

namespace precast::tools {
namespace {

using testing::HasSubstr;

TEST(PreviewTest, NamesTheOptionThatIsWrong) {
  const test::TemporaryFolder folder;
  const std::string file = test::put_golden_beton(folder.path(), "img_jpg_w3");
  const std::string png = (folder / "x.png").string();
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--seed=-1"}, "--seed: expected a number >= 0, got -1"},
      {{"--epoch=-1"}, "--epoch: expected a number >= 0, got -1"},
      {{"--train", "--crop=0:9,0:9"}, "expected --train or --crop, got both"},
      {{"--train", "--ratio=1"}, "expected --train or --ratio, got both"},
      {{"--ratio=1", "--crop=0:9,0:9"}, "expected --ratio or --crop, got both"},
      {{"--pipeline=[center_crop] junk"}, "expected one list or map"},
      {{"--pipeline=[random_resized_crop: {scale: [0.5, 2]}]"},
       "0 < smallest <= largest <= 1, got [0.5, 2]"},
  };
  for (const auto& [options, message] : cases) {
    std::vector<std::string> arguments = {"preview", file, "-o", png};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const test::PrecastRun run = test::precast_run(arguments);
    EXPECT_EQ(run.code, 2) << message;
    EXPECT_THAT(run.err, HasSubstr(message));
  }
  EXPECT_FALSE(std::filesystem::exists(png));
}

}  // namespace
}  // namespace precast::tools
