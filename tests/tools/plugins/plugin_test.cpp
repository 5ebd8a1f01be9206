#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "data/beton/reader.h"
#include "framework/core/error.h"
#include "framework/core/rng.h"
#include "tests/support/message_matchers.h"
#include "tests/support/part_spec.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_file.h"
#include "tools/cli/command.h"
#include "tools/commands/write.h"
#include "tools/plugins/parts_list.h"
#include "tools/plugins/plugins.h"

namespace precast::tools {
namespace {

using test::Names;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::filesystem::path built(const std::string& name) {
  return std::filesystem::path(test::test_plugin_dir()) / (name + ".so");
}

class PluginTest : public testing::Test {
 protected:
  void add(const std::filesystem::path& path) { add_data_plugin(PluginFile(path), parts_); }

  /// The complete error message of a call that must be refused with `code`.
  static std::string refusal(ExitCode code, const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), code) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "accepted";
    return "";
  }

  /// A copy of a plug-in in which `from` is replaced with `to`, which has the same length.
  std::filesystem::path changed(const std::string& name, const std::string& from,
                                const std::string& to) {
    std::string bytes = test::read_text(built(name));
    const std::size_t at = bytes.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    EXPECT_EQ(from.size(), to.size());
    if (at != std::string::npos) bytes.replace(at, from.size(), to);
    std::ofstream(folder_ / "changed.so", std::ios::binary) << bytes;
    return folder_ / "changed.so";
  }

  test::TemporaryFolder folder_;
  data::DataParts parts_ = make_data_parts();
};

TEST_F(PluginTest, TheDigestIsThatOfItsFile) {
  EXPECT_EQ(PluginFile(built("transform")).digest(), plugin_digest(built("transform")));
  std::ofstream(folder_ / "a.so") << "one";
  std::ofstream(folder_ / "b.so") << "two";
  EXPECT_NE(plugin_digest(folder_ / "a.so"), plugin_digest(folder_ / "b.so"));
  EXPECT_THROW(static_cast<void>(plugin_digest(folder_ / "missing.so")), IoError);
}

TEST_F(PluginTest, AddsItsPartsWithTheirOptions) {
  add(built("transform"));
  const auto transform = parts_.pipeline.transforms.create("invert");
  Schema schema;
  transform->options(schema);
  EXPECT_EQ(schema.names(), std::vector<std::string>{"white"});
  std::uint8_t pixels[] = {0, 100, 255};
  data::TransformContext context{.random = {0, 0, 0, RandomUse::shuffle_on_write},
                                 .sample = 0,
                                 .scratch = {},
                                 .mask_fill = {}};
  transform->apply({pixels, {1, 1, 3}}, context);
  EXPECT_THAT(pixels, testing::ElementsAre(255, 155, 0));
}

TEST_F(PluginTest, DatasetsAreWrittenWithItsFields) {
  const std::string images = folder_ / "images.bin";
  const std::string file = folder_ / "images.beton";
  // Two records in CIFAR-10's binary format, of classes 3 and 4.
  std::ofstream(images, std::ios::binary)
      << '\3' << std::string(3072, 'a') << '\4' << std::string(3072, 'b');
  const auto write = [&](const std::string& field, std::vector<std::string> more = {}) {
    std::vector<std::string> args = {images,         file,       "--source-kind",
                                     "cifar",        "--plugin", built("transform"),
                                     "--field-kind", field};
    args.insert(args.end(), more.begin(), more.end());
    return run_write(args);
  };
  ASSERT_EQ(write("label=tenfold", {"--tenfold.factor", "7"}), 0);
  EXPECT_EQ(data::BetonReader(file).integer(0, 1), 21);
  EXPECT_THAT(
      refusal(ExitCode::usage, [&] { (void)write("label=tenfold", {"--tenfold.factor=0"}); }),
      Names("tenfold.factor", "1", "0"));
  ASSERT_EQ(write("label=tenfold"), 0);
  const data::BetonReader reader(file);
  EXPECT_EQ(reader.integer(0, reader.field("label")), 30);
  EXPECT_EQ(reader.integer(1, reader.field("label")), 40);
  EXPECT_THAT(refusal(ExitCode::usage, [&] { (void)write("labels=tenfold"); }),
              Names("--field-kind", "labels", "label"));
  EXPECT_THAT(refusal(ExitCode::usage, [&] { (void)write("label=tenfolds"); }),
              Names("--field-kind", "tenfolds", "tenfold"));
}

TEST_F(PluginTest, DatasetsAreReadByItsSources) {
  const std::string input = folder_ / "three.count", file = folder_ / "numbers.beton";
  std::ofstream(input) << "abc";
  ASSERT_EQ(run_write({input, file, "--plugin", built("transform"), "--step=5"}), 0);
  const data::BetonReader reader(file);
  EXPECT_EQ(reader.size(), 3U);
  add(built("transform"));
  const ConfigNode twice = test::part_spec("backwards", "{twice: yes}").options;
  const auto order = make_order(parts_.orders, reader, {.name = "backwards", .part = twice});
  EXPECT_THAT(order->ids(0, 0), testing::ElementsAre(2, 2, 1, 1, 0, 0));
  EXPECT_EQ(reader.integer(2, reader.field("number")), 10);
  // An option of a different kind of source, and an option that no source has.
  for (const char* option : {"--labels=x.txt", "--stride=5"}) {
    EXPECT_THAT(refusal(ExitCode::usage,
                        [&] {
                          (void)run_write({input, file, "--plugin", built("transform"), option});
                        }),
                Names(std::string(option).substr(0, 8)));
  }
}

TEST_F(PluginTest, FilesThatAreNotPluginsAreRejectedWithTheReason) {
  EXPECT_THAT(refusal(ExitCode::usage, [&] { add(folder_ / "none.so"); }),
              Names(folder_ / "none.so"));
  std::ofstream(folder_ / "text.so") << "hello";
  EXPECT_THAT(refusal(ExitCode::usage, [&] { add(folder_ / "text.so"); }),
              AllOf(Names(folder_ / "text.so"), Not(HasSubstr("precast_plugin"))));
  EXPECT_THAT(refusal(ExitCode::usage, [&] { add(built("no_descriptor")); }),
              Names(built("no_descriptor"), "PRECAST_TRAIN_PLUGIN", "PRECAST_DATA_PLUGIN"));
}

TEST_F(PluginTest, OtherBuildsAreRejectedWithBothVersionsAndTheFix) {
  EXPECT_THAT(refusal(ExitCode::environment,
                      [&] { add(changed("transform", "\nprecast 0", "\nprecast 9")); }),
              AllOf(Names("precast", "cmake --build"), HasSubstr("'0."), HasSubstr("'9.")));
  EXPECT_THAT(
      refusal(ExitCode::environment,
              [&] { add(changed("transform", "libstdc++ ", "libc++    ")); }),
      AllOf(Names("compiler", "cmake --build"), HasSubstr("libstdc++ "), HasSubstr("libc++ ")));
  EXPECT_THAT(refusal(ExitCode::environment,
                      [&] { add(changed("transform", "interface 1", "interface 7")); }),
              Names("interface", "'1'", "'7'"));
}

TEST_F(PluginTest, MacrosAndHeadersOfItsOwnBuildAreCompared) {
  EXPECT_THAT(refusal(ExitCode::environment, [&] { add(built("debug_containers")); }),
              Names("compiler", "debug standard"));
  EXPECT_THAT(refusal(ExitCode::environment, [&] { add(built("other_headers")); }),
              AllOf(Names("precast", "headers"), HasSubstr("'0.")));
}

TEST_F(PluginTest, MissingSymbolsAreNamed) {
  EXPECT_THAT(refusal(ExitCode::environment, [&] { add(built("missing_symbol")); }),
              AllOf(Names(built("missing_symbol")), HasSubstr("function_of_no_library")));
}

TEST_F(PluginTest, ThrowingRegistrationRefusesThePlugin) {
  EXPECT_THAT(refusal(ExitCode::usage, [&] { add(built("throwing_registration")); }),
              Names("throwing_registration.so", "not today"));
}

TEST_F(PluginTest, ThrowingGlobalObjectEndsTheProcessWithAMessage) {
  EXPECT_EXIT(add(built("throwing_global")), testing::ExitedWithCode(2),
              Names(built("throwing_global"),
                    "no luck today"));  // the wording is tested: the plug-in's own words
}

TEST_F(PluginTest, TakenNamesAreRefused) {
  EXPECT_THAT(refusal(ExitCode::usage, [&] { add(built("taken_name")); }),
              Names("taken_name.so", "transform 'horizontal_flip'"));
}

TEST_F(PluginTest, PartsThatCannotBeMadeAreNamedWithTheirPlugin) {
  add(built("throwing_part"));
  EXPECT_THAT(refusal(ExitCode::usage, [&] { (void)parts_.pipeline.transforms.create("unlucky"); }),
              Names("throwing_part.so", "transform 'unlucky'",
                    "no luck today"));  // the wording is tested: the plug-in's own words
  EXPECT_THAT(refusal(ExitCode::usage, [&] { (void)parts_.pipeline.transforms.create("empty"); }),
              Names("throwing_part.so", "transform 'empty'"));
}

TEST_F(PluginTest, PartsThatFailAtWorkAreNamedWithTheirPluginWhateverTheyThrow) {
  add(built("throwing_part"));
  const auto transform = parts_.pipeline.transforms.create("fails_at_work");
  data::TransformContext context{.random = {0, 0, 0, RandomUse::shuffle_on_write},
                                 .sample = 0,
                                 .scratch = {},
                                 .mask_fill = {}};
  EXPECT_THAT(refusal(ExitCode::failed,
                      [&] {
                        transform->apply({nullptr, {0, 0, 3}}, context);
                      }),
              Names("throwing_part.so", "'fails_at_work'", "apply", "std::exception"));
}

TEST(PartsList, OptionsThatPartsShareArePrintedOnce) {
  const auto part = [](const char* name, const char* options) {
    return ListedPart{name, "help", options, nlohmann::ordered_json::object()};
  };
  const std::vector<ListedKind> kinds = {
      {"models",
       {part("net18", "    width\n"), part("other", ""), part("net50", "    width\n"),
        part("plain", ""), part("layers", "    layers\n")}}};
  Arguments arguments = list_arguments();
  ASSERT_TRUE(arguments.parse({}));
  testing::internal::CaptureStdout();
  print_parts(arguments, kinds);
  const std::string text = testing::internal::GetCapturedStdout();
  const auto line = [&](const char* name) { return text.find(name); };
  EXPECT_EQ(text.find("width"), text.rfind("width"));
  EXPECT_LT(line("net18"), line("net50"));
  EXPECT_LT(line("net50"), line("width"));
  EXPECT_LT(line("width"), line("other"));
  EXPECT_LT(line("plain"), line("layers"));
}

TEST(PartsList, DescriptionsBeginInOneColumnEvenAfterALongName) {
  const std::string name(26, 'x');
  Arguments arguments = list_arguments();
  ASSERT_TRUE(arguments.parse({}));
  testing::internal::CaptureStdout();
  print_parts(arguments, {{"methods", {{"ema", "first", "", {}}, {name, "second", "", {}}}}});
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "methods\n  ema" + std::string(24, ' ') + "first\n  " + name + " second\n\n");
}

TEST_F(PluginTest, WithoutLibtorchThePartsOfDataAreListed) {
  testing::internal::CaptureStdout();
  const int code = run_list_data({"--json", "--plugin", built("transform")});
  const auto listed = nlohmann::json::parse(testing::internal::GetCapturedStdout());
  ASSERT_EQ(code, 0);
  EXPECT_FALSE(listed.contains("models"));
  EXPECT_EQ(listed.at("transforms").back().at("name"), "invert");
  EXPECT_EQ(listed.at("transforms").back().at("options").at("white"), 255);
  EXPECT_EQ(listed.at("fields").back().at("name"), "tenfold");
  const auto& image = listed.at("fields").front().at("options");
  EXPECT_EQ(image.at("mode"), "jpg");
  EXPECT_EQ(image.at("quality"), 90);
  EXPECT_EQ(image.at("passthrough"), false);
  EXPECT_EQ(listed.at("fields").back().at("options").at("factor"), 10);
  EXPECT_EQ(listed.at("sources").back().at("name"), "count");
  EXPECT_EQ(listed.at("sources").back().at("options").at("step"), 1);
  EXPECT_EQ(listed.at("orders").front().at("name"), "sequential");
}

TEST(PartsList, OptionsOfSourcesHaveTheirNamesOnTheCommandLine) {
  for (const ListedKind& kind : list_data_parts(make_data_parts())) {
    if (kind.kind != "sources") continue;
    const auto table = std::ranges::find(kind.parts, "table", &ListedPart::name);
    ASSERT_NE(table, kind.parts.end());
    const std::vector<std::string> options = {"class-names", "class-column", "texts", "documents",
                                              "floats"};
    for (const std::string& option : options) {
      EXPECT_THAT(table->option_lines, Names("--" + option));
      EXPECT_TRUE(table->options.contains(option)) << option;
    }
    EXPECT_EQ(table->options.size(), options.size());
    return;
  }
  FAIL() << "no sources";
}

TEST(CommandTest, WhateverIsThrownEndsWithAMessage) {
  EXPECT_EQ(describe_failure(std::make_exception_ptr(42)).exit_code, 1);
}

TEST_F(PluginTest, PathsCountFromTheRecipesFolderAndTheLastOverrideCounts) {
  std::filesystem::copy(built("transform"), folder_ / "mine.so");
  std::ofstream(folder_ / "recipe.yaml") << "plugins: [mine.so]\n";
  Diagnostics diagnostics;
  const ConfigNode recipe = parse_yaml_file(folder_ / "recipe.yaml", diagnostics);
  ASSERT_EQ(open_plugins(recipe, {}, diagnostics).size(), 1U);
  EXPECT_EQ(open_plugins(recipe, {}, diagnostics)[0].path(), folder_ / "mine.so");

  const Origin line{"command line", 0, 0};
  const Override none{"plugins", parse_override("[]", line, diagnostics)};
  EXPECT_TRUE(open_plugins(recipe, {none}, diagnostics).empty());
  const Override text{"plugins", parse_override("mine.so", line, diagnostics)};
  EXPECT_TRUE(open_plugins(recipe, {text}, diagnostics).empty());
  ASSERT_EQ(diagnostics.errors().size(), 1U);
  EXPECT_THAT(diagnostics.errors()[0], Names("command line", "plugins", "mine.so"));
}

}  // namespace
}  // namespace precast::tools
