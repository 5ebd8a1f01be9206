// `precast preview` as a user starts it; its pixels other tests look at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/data/beton/golden_beton.h"
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

}  // namespace
}  // namespace precast::tools
