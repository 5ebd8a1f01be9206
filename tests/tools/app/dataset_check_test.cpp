#include "tools/app/dataset_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "data/beton/file_info.h"
#include "data/write/writer.h"
#include "framework/core/error.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tools/app/recipe.h"
#include "tools/app/session.h"
#include "tools/cli/recipe_arguments.h"

namespace precast::tools {
namespace {

using test::Names;
using testing::ElementsAre;
using testing::ThrowsMessage;

class DatasetCheckTest : public ::testing::Test {
 protected:
  /// A file of these labels, with the names of classes.
  data::BetonReader file(const std::string& name, const std::vector<std::int64_t>& labels,
                         const std::vector<std::string>& names) {
    data::BetonLayout layout;
    layout.info = data::file_info_text({.classes = {{"label", names}}, .written = {}});
    data::BetonWriter writer(folder_ / name, {{"label", data::FieldType::integer}}, labels.size(),
                             layout);
    for (const std::int64_t label : labels) {
      data::EncodedValue value;
      value.metadata.resize(8);
      data::store(value.metadata.data(), label);
      writer.add({&value, 1});
    }
    writer.finish();
    return data::BetonReader(folder_ / name);
  }

  test::TemporaryFolder folder_;
};

TEST_F(DatasetCheckTest, BothMissingFilesAreNamedWithKeyAndPlace) {
  std::ofstream(folder_ / "r.yaml") << "data:\n"
                                       "  train_dataset: no_train.beton\n"
                                       "  val_dataset: /nowhere/no_val.beton\n";
  Registries registries = make_registries();
  const Recipe recipe = load_recipe(folder_ / "r.yaml", {}, registries);
  EXPECT_THAT([&] { check_datasets(recipe.datasets); },
              ThrowsMessage<IoError>(Names("r.yaml:2:18", "data.train_dataset", "no_train.beton",
                                           std::filesystem::current_path(), "r.yaml:3:16",
                                           "data.val_dataset", "/nowhere/no_val.beton")));
}

TEST_F(DatasetCheckTest, DatasetsThatARecipeDoesNotNameAreMissingToo) {
  const std::vector<std::string> args = {"--data.val_dataset=none.beton"};
  std::vector<std::string> given = args;
  Registries registries = make_registries();
  const Recipe recipe = load_recipe("", take_overrides(given), registries);
  EXPECT_THAT([&] { check_datasets(recipe.datasets); },
              ThrowsMessage<ConfigError>(Names("data.train_dataset", "--data.train_dataset",
                                               "command line", "none.beton")));
  EXPECT_NO_THROW(check_datasets({}));
}

TEST_F(DatasetCheckTest, LabelsMustMeanTheSameClasses) {
  const auto train = file("train.beton", {0, 1, 2, 3}, {"ant", "bee", "cat", "dog"});
  const auto alone = file("alone.beton", {0, 1}, {"bee", "dog"});
  EXPECT_THAT([&] { check_same_classes(train, 0, alone, 0); },
              ThrowsMessage<ConfigError>(Names("data.val_dataset", "label 0", "'ant'", "'bee'",
                                               "--class-names " + train.path().string())));
  const auto same = file("same.beton", {1, 3}, {"ant", "bee", "cat", "dog"});
  EXPECT_NO_THROW(check_same_classes(train, 0, same, 0));
  EXPECT_THAT(class_warnings(train, 0, {}, same, 0),
              ElementsAre(Names("data.val_dataset", 2, 4, "0 (ant), 2 (cat)")));
  const auto unnamed = file("unnamed.beton", {0, 1, 2, 3}, {});
  EXPECT_NO_THROW(check_same_classes(train, 0, unnamed, 0));
  EXPECT_THAT(class_warnings(train, 0, {}, unnamed, 0), testing::IsEmpty());
}

TEST_F(DatasetCheckTest, ASubsetOfASortedFileIsWarnedOf) {
  const auto train = file("train.beton", {0, 0, 1, 1, 2, 2}, {"ant", "bee", "cat"});
  EXPECT_THAT(class_warnings(train, 0, {.subset = "2"}, train, 0),
              ElementsAre(Names("data.subset", 2, 3, "1 (bee), 2 (cat)", "random:N")));
  EXPECT_THAT(class_warnings(train, 0, {.subset = "random:6"}, train, 0), testing::IsEmpty());
  // A filter leaves classes out on purpose.
  EXPECT_THAT(class_warnings(train, 0, {.filter = "label == 'ant'"}, train, 0), testing::IsEmpty());
  EXPECT_THAT(class_warnings(train, 0, {.subset = "2", .filter = "label < 2"}, train, 0),
              ElementsAre(Names("data.subset", 1, 2, "1 (bee)")));
}

}  // namespace
}  // namespace precast::tools
