#include "tools/cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/program_options.hpp>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "tests/support/message_matchers.h"
#include "tools/cli/help_text.h"
#include "tools/cli/recipe_arguments.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;
using test::Names;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

Arguments made() {
  Arguments arguments("merge A.beton [options]", "About.");
  arguments.positional("A.beton", "a file");
  arguments.options().add_options()("page-size", number(7), "bytes of a page; more of it")(
      "image.max_resolution", po::value<std::string>(), "a resolution")(
      "label-rule", po::value<std::string>()->default_value("keep"), "labels")(
      "output,o", po::value<std::string>()->value_name("FILE"), "file to write")(
      "deep", po::bool_switch(), "read all");
  std::vector<RecipeKey> keys;
  for (const char* name : {"training.epochs", "training.batch_size", "validation.batch_size"})
    keys.emplace_back().name = name;
  arguments.take_keys(std::move(keys));
  arguments.exit_codes({3});
  return arguments;
}

TEST(ArgumentsTest, HyphensAndUnderscoresAreOne) {
  for (const char* option : {"--page-size", "--page_size"}) {
    Arguments arguments = made();
    ASSERT_TRUE(arguments.parse({"x", option, "9", "--image.max-resolution=3"}));
    EXPECT_EQ(arguments.get<std::int64_t>("page-size"), 9);
    EXPECT_EQ(arguments.text("image.max_resolution"), "3");
  }
}

TEST(ArgumentsTest, AnOldSpellingSetsTheNewOptionAndIsReported) {
  Arguments arguments = made();
  testing::internal::CaptureStderr();
  ASSERT_TRUE(arguments.parse({"x", "--labels=offset"}));
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(arguments.text("label-rule"), "offset");
  EXPECT_THAT(told, AllOf(HasSubstr("--labels"), HasSubstr("--label-rule")));
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1);
}

TEST(ArgumentsTest, AnUnknownOptionGetsTheKeysThatItMayMean) {
  const auto parse = [](const std::string& option) {
    return [option] { (void)made().parse({"x", option}); };
  };
  EXPECT_THAT(parse("--epochs=3"), ThrowsMessage<ConfigError>(AllOf(HasSubstr("--training.epochs"),
                                                                    Not(HasSubstr("batch")))));
  EXPECT_THAT(parse("--batch-size=3"), ThrowsMessage<ConfigError>(Names(
                                           "--training.batch_size", "--validation.batch_size")));
  EXPECT_THAT(parse("--epoch=3"), ThrowsMessage<ConfigError>(HasSubstr("--training.epochs")));
  EXPECT_THAT(parse("--page-sise=3"), ThrowsMessage<ConfigError>(HasSubstr("--page-size")));
  EXPECT_THAT(parse("--zebra"), ThrowsMessage<ConfigError>(HasSubstr("--help")));
}

TEST(ArgumentsTest, ItDescribesItself) {
  const CommandHelp help = made().help();
  EXPECT_EQ(help.name, "merge");
  EXPECT_EQ(help.exit_codes, (std::vector<int>{0, 1, 2, 3, 5, 11}));
  const auto& page = help.options.at(1);
  EXPECT_EQ(page.name, "page-size");
  EXPECT_EQ(page.value, "N");
  EXPECT_EQ(page.default_text, "7");
  EXPECT_EQ(page.meaning(), "bytes of a page");  // the wording is tested: up to the semicolon
  const auto& output = help.options.at(4);
  EXPECT_EQ(output.letter, "o");
  EXPECT_EQ(output.value, "FILE");
  EXPECT_EQ(help.options.at(5).value, "");
  EXPECT_EQ(help_json(parse_help_json(help_json(help))), help_json(help));
}

TEST(ArgumentsTest, HelpFitsTheWidth) {
  const std::string text = help_text(made().help(), 60);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    EXPECT_LE(end - begin, 60U) << text.substr(begin, end - begin);
    begin = end + 1;
  }
}

TEST(ArgumentsTest, KeysOnTheCommandLineMayHaveHyphens) {
  std::vector<std::string> args = {"R.yaml", "--training.batch-size=4", "--dry-run"};
  const auto overrides = take_overrides(args);
  ASSERT_EQ(overrides.size(), 1U);
  EXPECT_EQ(overrides[0].key, "training.batch_size");
  EXPECT_EQ(args, (std::vector<std::string>{"R.yaml", "--dry-run"}));
}

}  // namespace
}  // namespace precast::tools
