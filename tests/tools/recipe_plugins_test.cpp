#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "framework/core/error.h"
#include "tests/support/temporary_folder.h"
#include "tools/list.h"
#include "tools/recipe.h"

namespace precast::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class RecipePluginsTest : public testing::Test {
 protected:
  RecipePluginsTest() {
    std::filesystem::copy(PRECAST_TEST_PLUGIN_DIR "/train_parts.so", folder_ / "train_parts.so");
  }
  Recipe load(const std::string& text) {
    std::ofstream(folder_ / "r.yaml") << text;
    return load_recipe(folder_ / "r.yaml", {}, registries_);
  }

  test::TemporaryFolder folder_;
  Registries registries_ = make_registries();
};

TEST_F(RecipePluginsTest, PartsOfAPluginAreKnownWithTheirOptionsAndTheRecipeRecordsTheFile) {
  const Recipe recipe = load(
      "plugins: [train_parts.so]\n"
      "training: {epochs: 9}\n"
      "methods: [half_epochs: {factor: 3}]\n");
  EXPECT_EQ(make_plan(recipe, registries_, 100, 10).epochs, 3);
  EXPECT_EQ(recipe.resolved["plugins"][0], (folder_ / "train_parts.so").string());
  EXPECT_EQ(recipe.resolved["plugins.xxh3"][0].get<std::string>().size(), 16U);
}

TEST_F(RecipePluginsTest, ListShowsAPluginsPartsWithTheirDefaults) {
  const std::string plugin = folder_ / "train_parts.so";
  testing::internal::CaptureStdout();
  const int code = run_list({"methods", "--plugin", plugin, "--json"});
  const auto listed = nlohmann::json::parse(testing::internal::GetCapturedStdout());
  ASSERT_EQ(code, 0);
  EXPECT_EQ(listed.size(), 1U) << "methods alone";
  const nlohmann::json& last = listed.at("methods").back();
  EXPECT_EQ(last.at("name"), "half_epochs");
  EXPECT_EQ(last.at("options").at("factor"), 2);
}

TEST_F(RecipePluginsTest, WrongOptionsOfAPluginsPartAreTold) {
  try {
    static_cast<void>(load("plugins: [train_parts.so]\nmethods: [half_epochs: {factors: 3}]\n"));
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("half_epochs.factors"), HasSubstr("Did you mean 'factor'?")));
  }
}

TEST_F(RecipePluginsTest, ThrowingConstructorIsToldWithItsModelAndPlugin) {
  try {
    static_cast<void>(
        load("plugins: [train_parts.so]\nmodel: {arch: unlucky_net, params: {depth: 3}}\n"));
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("train_parts.so"), HasSubstr("model 'unlucky_net'"),
                                    HasSubstr("no weights today")));
  }
}

TEST_F(RecipePluginsTest, PluginForAnotherLibtorchIsRefusedBeforeItIsOpened) {
  std::ostringstream content;
  content << std::ifstream(folder_ / "train_parts.so", std::ios::binary).rdbuf();
  std::string bytes = content.str();
  const std::size_t at = bytes.find("\ntorch 2.");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 9, "\ntorch 1.");
  std::ofstream(folder_ / "train_parts.so", std::ios::binary) << bytes;
  try {
    static_cast<void>(load("plugins: [train_parts.so]\n"));
    FAIL() << "accepted";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("expected libtorch '2."), HasSubstr("got '1."),
                                    HasSubstr("Rebuild it")));
  }
}

}  // namespace
}  // namespace precast::tools
