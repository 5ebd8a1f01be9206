#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "data/beton/reader.h"
#include "framework/core/error.h"
#include "framework/core/rng.h"
#include "tests/support/temporary_folder.h"
#include "tools/command.h"
#include "tools/parts_list.h"
#include "tools/plugins.h"
#include "tools/write.h"

namespace precast::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::filesystem::path built(const std::string& name) {
  return std::filesystem::path(PRECAST_TEST_PLUGIN_DIR) / (name + ".so");
}

class PluginTest : public testing::Test {
 protected:
  void add(const std::filesystem::path& path) { add_data_plugin(PluginFile(path), parts_); }

  /// The whole message of a call that must be refused with `code`.
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

  /// A copy of a plug-in in which `from` became `to`, of the same length.
  std::filesystem::path changed(const std::string& name, const std::string& from,
                                const std::string& to) {
    std::ostringstream content;
    content << std::ifstream(built(name), std::ios::binary).rdbuf();
    std::string bytes = content.str();
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
  // Two records of CIFAR-10's binary form, of the classes 3 and 4.
  std::ofstream(images, std::ios::binary)
      << '\3' << std::string(3072, 'a') << '\4' << std::string(3072, 'b');
  const auto write = [&](const std::string& field) {
    return run_write(
        {images, file, "--kind", "cifar", "--plugin", built("transform"), "--field", field});
  };
  ASSERT_EQ(write("label=tenfold"), 0);
  const data::BetonReader reader(file);
  EXPECT_EQ(reader.integer(0, reader.field("label")), 30);
  EXPECT_EQ(reader.integer(1, reader.field("label")), 40);
  EXPECT_THAT(refusal(ExitCode::usage, [&] { (void)write("labels=tenfold"); }),
              HasSubstr("Did you mean 'label'?"));
  EXPECT_THAT(refusal(ExitCode::usage, [&] { (void)write("label=tenfolds"); }),
              HasSubstr("Did you mean 'tenfold'?"));
}

TEST_F(PluginTest, WhatIsNoPluginIsToldApart) {
  EXPECT_THAT(refusal(ExitCode::usage, [&] { add(folder_ / "none.so"); }),
              AllOf(HasSubstr("none.so"), HasSubstr("expected a file, got none")));
  std::ofstream(folder_ / "text.so") << "hello";
  EXPECT_THAT(refusal(ExitCode::usage, [&] { add(folder_ / "text.so"); }),
              HasSubstr("expected a shared library (.so), got another kind of file"));
  EXPECT_THAT(refusal(ExitCode::usage, [&] { add(built("no_descriptor")); }),
              HasSubstr("expected PRECAST_TRAIN_PLUGIN or PRECAST_DATA_PLUGIN"));
}

TEST_F(PluginTest, OtherBuildsAreRefusedWithBothSidesAndTheCure) {
  EXPECT_THAT(
      refusal(ExitCode::environment,
              [&] { add(changed("transform", "\nprecast 0", "\nprecast 9")); }),
      AllOf(HasSubstr("expected precast '0."), HasSubstr("got '9."), HasSubstr("Rebuild it")));
  EXPECT_THAT(refusal(ExitCode::environment,
                      [&] { add(changed("transform", "libstdc++ ", "libc++    ")); }),
              AllOf(HasSubstr("expected compiler"), HasSubstr("libc++"), HasSubstr("Rebuild it")));
  EXPECT_THAT(refusal(ExitCode::environment,
                      [&] { add(changed("transform", "interface 1", "interface 7")); }),
              AllOf(HasSubstr("expected interface '1'"), HasSubstr("got '7'")));
}

TEST_F(PluginTest, WhatItsOwnCompilationSawIsCompared) {
  EXPECT_THAT(refusal(ExitCode::environment, [&] { add(built("debug_containers")); }),
              AllOf(HasSubstr("expected compiler"), HasSubstr(" debug standard ")));
  EXPECT_THAT(refusal(ExitCode::environment, [&] { add(built("other_headers")); }),
              AllOf(HasSubstr("expected precast '0."), HasSubstr(" headers ")));
}

TEST_F(PluginTest, MissingSymbolsAreNamed) {
  EXPECT_THAT(refusal(ExitCode::environment, [&] { add(built("missing_symbol")); }),
              AllOf(HasSubstr("missing_symbol.so"), HasSubstr("undefined symbol"),
                    HasSubstr("function_of_no_library")));
}

TEST_F(PluginTest, ThrowingRegistrationRefusesThePlugin) {
  EXPECT_THAT(refusal(ExitCode::usage, [&] { add(built("throwing_registration")); }),
              AllOf(HasSubstr("throwing_registration.so"), HasSubstr("not today")));
}

TEST_F(PluginTest, ThrowingGlobalObjectEndsTheProcessWithAMessage) {
  EXPECT_EXIT(add(built("throwing_global")), testing::ExitedWithCode(2),
              "throwing_global.so: one of its global objects threw: no luck today");
}

TEST_F(PluginTest, TakenNamesAreRefused) {
  EXPECT_THAT(refusal(ExitCode::usage, [&] { add(built("taken_name")); }),
              AllOf(HasSubstr("taken_name.so"), HasSubstr("transform 'horizontal_flip'"),
                    HasSubstr("registered already")));
}

TEST_F(PluginTest, PartsThatCannotBeMadeAreNamedWithTheirPlugin) {
  add(built("throwing_part"));
  EXPECT_THAT(refusal(ExitCode::usage, [&] { (void)parts_.pipeline.transforms.create("unlucky"); }),
              AllOf(HasSubstr("throwing_part.so"), HasSubstr("transform 'unlucky'"),
                    HasSubstr("no luck today")));
  EXPECT_THAT(refusal(ExitCode::usage, [&] { (void)parts_.pipeline.transforms.create("empty"); }),
              AllOf(HasSubstr("transform 'empty'"), HasSubstr("null pointer")));
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
              AllOf(HasSubstr("throwing_part.so"), HasSubstr("'fails_at_work' failed in apply"),
                    HasSubstr("no std::exception")));
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
  EXPECT_EQ(image.at("image.mode"), "jpg");
  EXPECT_EQ(image.at("image.quality"), 90);
  EXPECT_EQ(image.at("image.passthrough"), false);
  EXPECT_EQ(listed.at("orders").front().at("name"), "sequential");
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
  EXPECT_THAT(diagnostics.errors()[0], HasSubstr("expected a list of files"));
}

}  // namespace
}  // namespace precast::tools
