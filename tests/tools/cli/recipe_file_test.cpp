#include "tools/cli/recipe_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "tests/support/temporary_folder.h"

namespace precast::tools {
namespace {

class RecipeFileTest : public testing::Test {
 protected:
  RecipeFile read(const std::string& text) {
    write_file(folder_ / "a.json", text);
    Diagnostics diagnostics;
    RecipeFile file = read_recipe_file(folder_ / "a.json", diagnostics);
    EXPECT_THAT(diagnostics.errors(), testing::IsEmpty());
    return file;
  }
  test::TemporaryFolder folder_;
};

TEST_F(RecipeFileTest, ARecipeIsAsItIsWritten) {
  const RecipeFile file = read("lr: {lr: 0.1}\nmethods: [ema]\n");
  EXPECT_FALSE(file.saved);
  EXPECT_EQ(file.sections.flow(), "{lr: {lr: 0.1}, methods: [ema]}");
}

TEST_F(RecipeFileTest, AFlatFileBecomesSections) {
  const RecipeFile file = read(
      R"({"lr.lr": 0.1, "data.order": "random", "lr.warmup": 3, "plugins": [],
          "plugins.xxh3": ["0"], "methods": [{"ema": {"decay": 0.9}}]})");
  EXPECT_TRUE(file.saved);
  EXPECT_EQ(file.sections.flow(),
            "{lr: {lr: 0.1, warmup: 3}, data: {order: random}, plugins: [], "
            "methods: [{ema: {decay: 0.9}}]}");
  EXPECT_EQ(file.sections.find("lr")->find("warmup")->origin.line, 1);
}

TEST_F(RecipeFileTest, DefaultsAreNotGiven) {
  RecipeFile file = read(R"({"lr.lr": 0.5, "lr.step": 30, "data.subset": "", "data.fields": []})");
  drop_defaults(file.sections, {{"lr.lr", 0.5},
                                {"lr.step", 20},
                                {"data.subset", ""},
                                {"data.fields", nlohmann::ordered_json::array()}});
  EXPECT_EQ(file.sections.flow(), "{lr: {step: 30}, data: {}}");
}

}  // namespace
}  // namespace precast::tools
