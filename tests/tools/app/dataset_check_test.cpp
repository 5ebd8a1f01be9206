#include "tools/app/dataset_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "data/beton/file_info.h"
#include "data/write/writer.h"
#include "framework/core/error.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tools/app/recipe.h"
#include "tools/app/recipe_outputs.h"
#include "tools/app/session.h"
#include "tools/cli/recipe_arguments.h"

namespace precast::tools {
namespace {

using test::Names;
using testing::ElementsAre;
using testing::ThrowsMessage;

class DatasetCheckTest : public ::testing::Test {
 protected:
  /// A file with these labels and names of classes.
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
  /// A file with one sample, whose int fields animal and color are 0.
  data::BetonReader animal_and_color(
      const std::map<std::string, std::vector<std::string>>& classes) {
    data::BetonLayout layout;
    layout.info = data::file_info_text({.classes = classes, .written = {}});
    data::BetonWriter writer(
        folder_ / "a.beton",
        {{"animal", data::FieldType::integer}, {"color", data::FieldType::integer}}, 1, layout);
    std::vector<data::EncodedValue> values(2);
    for (data::EncodedValue& value : values) value.metadata.resize(8);
    writer.add(values);
    writer.finish();
    return data::BetonReader(folder_ / "a.beton");
  }

  test::TemporaryFolder folder_;
};

TEST_F(DatasetCheckTest, BothMissingFilesAreNamedWithKeyAndLocation) {
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
  EXPECT_THAT(class_warnings(train, 0, {}, unnamed, 0),
              ElementsAre(Names(unnamed.path().string() + ":", "names", train.path().string())));
  EXPECT_THAT(class_warnings(unnamed, 0, {}, train, 0),
              ElementsAre(Names(unnamed.path().string() + ":", "names", train.path().string())));
  EXPECT_THAT(class_warnings(unnamed, 0, {}, unnamed, 0), testing::IsEmpty());
}

TEST_F(DatasetCheckTest, ClassesWithNamesCountEvenWithoutSamples) {
  Registries registries = make_registries();
  const Recipe recipe = load_recipe("", {}, registries);
  const auto count = [&](const std::vector<std::int64_t>& labels,
                         const std::vector<std::string>& names, std::int64_t limit = 0) {
    const data::BetonReader reader = file("train.beton", labels, names);
    return count_classes(reader, recipe.train_pipeline, recipe.config, limit);
  };
  EXPECT_EQ(count({0, 1}, {"ant", "bee", "cat"}), 3);
  EXPECT_EQ(count({0, 3}, {"ant", "bee", "cat"}), 4);
  EXPECT_EQ(count({0, 1}, {}), 2);
  EXPECT_EQ(count({0, 1}, {"ant", "bee", "cat"}, 2), 2);
}

/// Recipes with several files under one key.
class SeveralDatasetsTest : public DatasetCheckTest {
 protected:
  Recipe recipe(const std::string& files, const std::string& more = "") {
    std::ofstream(folder_ / "r.yaml")
        << "data:\n  val_dataset: v.beton\n  train_dataset: " << files << "\n"
        << more;
    Registries registries = make_registries();
    return load_recipe(folder_ / "r.yaml", {}, registries);
  }
  std::string list(const std::string& a, const std::string& b) {
    return "[" + (folder_ / a).string() + ", " + (folder_ / b).string() + "]";
  }
};

TEST_F(SeveralDatasetsTest, AreReadAsOne) {
  (void)file("a.beton", {0, 1, 2}, {"ant", "bee", "cat"});
  (void)file("b.beton", {3, 0}, {"ant", "bee", "cat", "dog"});
  for (const std::string in_memory : {"", "  in_memory: 0\n"}) {
    const Recipe both = recipe(list("a.beton", "b.beton"), in_memory);
    const auto reader = open_dataset("data.train_dataset", both);
    EXPECT_EQ(reader->size(), 5U);
    EXPECT_EQ(reader->integer(3, 0), 3);
    EXPECT_EQ(data::class_names_of(*reader, 0).size(), 4U);
    EXPECT_EQ(count_classes(*reader, both.train_pipeline, both.config, 0), 4);
    EXPECT_EQ(both.resolved.at("data.train_dataset").size(), 2U);
    EXPECT_EQ(both.resolved.at("data.val_dataset"), "v.beton");
  }
  const Recipe one = recipe("[" + (folder_ / "a.beton").string() + "]");
  EXPECT_EQ(one.resolved.at("data.train_dataset"), (folder_ / "a.beton").string());
}

TEST_F(SeveralDatasetsTest, MayComeFromTheCommandLine) {
  (void)file("a.beton", {0}, {});
  (void)file("b.beton", {1, 2}, {});
  std::vector<std::string> args = {"--data.train_dataset=" + list("a.beton", "b.beton")};
  Registries registries = make_registries();
  const Recipe recipe = load_recipe("", take_overrides(args), registries);
  EXPECT_EQ(open_dataset("data.train_dataset", recipe)->size(), 3U);
  EXPECT_THROW((void)open_dataset("data.val_dataset", recipe), ConfigError);
}

TEST_F(SeveralDatasetsTest, EachMissingFileIsNamed) {
  (void)file("a.beton", {0}, {});
  const Recipe both = recipe(list("a.beton", "gone.beton"));
  EXPECT_THAT([&] { check_datasets(both.datasets); },
              ThrowsMessage<IoError>(Names("r.yaml:3:18", "data.train_dataset", "gone.beton",
                                           "r.yaml:2:16", "data.val_dataset")));
}

TEST_F(SeveralDatasetsTest, ErrorsAboutFieldsAndClassesNameTheLocationOfTheKey) {
  (void)file("a.beton", {0, 1}, {"ant", "bee"});
  (void)file("b.beton", {0, 1}, {"ant", "cat"});
  (void)file("nameless.beton", {0, 1}, {});
  data::BetonWriter writer(folder_ / "floats.beton", {{"weight", data::FieldType::floating}}, 1,
                           {});
  data::EncodedValue value;
  value.metadata.resize(8);
  writer.add({&value, 1});
  writer.finish();
  const auto open = [&](const std::string& other) {
    (void)open_dataset("data.train_dataset", recipe(list("a.beton", other)));
  };
  EXPECT_THAT([&] { open("floats.beton"); },
              ThrowsMessage<DataError>(Names("r.yaml:3:18", "data.train_dataset", "a.beton",
                                             "floats.beton", "'label' int", "'weight' float")));
  EXPECT_THAT([&] { open("b.beton"); },
              ThrowsMessage<ConfigError>(
                  Names("r.yaml:3:18", "data.train_dataset", "a.beton", "b.beton", "label 1",
                        "'bee'", "'cat'", "precast merge", "--label-field label", "--label-rule")));
  EXPECT_THAT([&] { open("nameless.beton, " + (folder_ / "b.beton").string()); },
              ThrowsMessage<ConfigError>(Names("a.beton", "b.beton", "label 1")));
  EXPECT_NO_THROW(open("nameless.beton"));
  const auto mixed = open_dataset("data.train_dataset", recipe(list("a.beton", "nameless.beton")));
  EXPECT_THAT(data::class_names_of(*mixed, 0), testing::IsEmpty());
}

TEST_F(SeveralDatasetsTest, EveryTargetHasTheSameClassesInAllFiles) {
  const auto write = [&](const std::string& name, const std::vector<std::string>& colors) {
    data::BetonLayout layout;
    layout.info = data::file_info_text(
        {.classes = {{"animal", {"ant", "bee"}}, {"color", colors}}, .written = {}});
    data::BetonWriter writer(
        folder_ / name, {{"animal", data::FieldType::integer}, {"color", data::FieldType::integer}},
        1, layout);
    std::vector<data::EncodedValue> values(2);
    for (data::EncodedValue& value : values) value.metadata.resize(8);
    writer.add(values);
    writer.finish();
  };
  write("a.beton", {"red", "blue"});
  write("b.beton", {"red", "green"});
  const auto open = [&](const std::string& targets) {
    (void)open_dataset("data.train_dataset", recipe(list("a.beton", "b.beton"), targets));
  };
  EXPECT_NO_THROW(open(""));
  EXPECT_NO_THROW(open("  targets: [animal]\n"));
  EXPECT_THAT([&] { open("  targets: [animal, color]\n"); },
              ThrowsMessage<ConfigError>(
                  Names("data.train_dataset", "label 1", "'color'", "'blue'", "'green'")));
  EXPECT_THAT([&] { open("pipeline: {train: {label: color}}\n"); },
              ThrowsMessage<ConfigError>(Names("label 1", "'color'")));
}

TEST_F(DatasetCheckTest, TheOrderReadsTheLabelsOfTheLoss) {
  // Only the second field has class names.
  const data::BetonReader reader = animal_and_color({{"color", {"red"}}});
  const auto field_of = [&](const std::string& lines) {
    std::ofstream(folder_ / "r.yaml") << lines;
    Registries registries = make_registries();
    const Recipe recipe = load_recipe(folder_ / "r.yaml", {}, registries);
    const auto labels = find_labels(reader, recipe.train_pipeline, recipe.config);
    EXPECT_TRUE(labels && reader.fields()[labels->field].name ==
                              train_order_options(recipe, reader).label_field);
    return train_order_options(recipe, reader).label_field;
  };
  EXPECT_EQ(field_of("data: {val_dataset: v.beton}\n"), "animal");
  EXPECT_EQ(field_of("data: {targets: [color]}\n"), "color");
  EXPECT_EQ(field_of("pipeline: {train: {label: color}}\n"), "color");
  EXPECT_EQ(field_of("data: {targets: [y]}\npipeline: {train: {x: animal, y: color}}\n"), "color");
}

TEST_F(DatasetCheckTest, ClassNamesAreThoseOfTheOutputThatTheLossReads) {
  const data::BetonReader reader = animal_and_color({{"animal", {"ant"}}, {"color", {"red"}}});
  const auto names = [&](const std::string& lines) {
    std::ofstream(folder_ / "r.yaml") << lines;
    Registries registries = make_registries();
    const Recipe recipe = load_recipe(folder_ / "r.yaml", {}, registries);
    return label_names(reader, recipe.val_pipeline, recipe.config);
  };
  EXPECT_THAT(names("data: {val_dataset: v.beton}\n"), ElementsAre("ant"));
  EXPECT_THAT(names("pipeline: {val: {label: color, x: animal}}\n"), ElementsAre("red"));
  EXPECT_THAT(names("pipeline: {val: {ids: sample_id, label: color}}\n"), ElementsAre("red"));
  // Predictions need no labels.
  EXPECT_THAT(names("pipeline: {val: {label: none}}\n"), testing::IsEmpty());
  EXPECT_THAT(names("data: {targets: [none]}\n"), testing::IsEmpty());
}

TEST_F(SeveralDatasetsTest, AListHasNoEmptyPath) {
  EXPECT_THAT([&] { (void)recipe("[a.beton, '']"); },
              ThrowsMessage<ConfigError>(Names("r.yaml:3:18", "data.train_dataset")));
  EXPECT_NO_THROW((void)recipe("[]"));
}

TEST_F(DatasetCheckTest, ASubsetOfASortedFileIsAWarning) {
  const auto train = file("train.beton", {0, 0, 1, 1, 2, 2}, {"ant", "bee", "cat"});
  EXPECT_THAT(class_warnings(train, 0, {.subset = "2"}, train, 0),
              ElementsAre(Names("data.subset", 2, 3, "1 (bee), 2 (cat)", "random:N")));
  EXPECT_THAT(class_warnings(train, 0, {.subset = "random:6"}, train, 0), testing::IsEmpty());
  // If a filter leaves out classes, this is intended.
  EXPECT_THAT(class_warnings(train, 0, {.filter = "label == 'ant'"}, train, 0), testing::IsEmpty());
  EXPECT_THAT(class_warnings(train, 0, {.subset = "2", .filter = "label < 2"}, train, 0),
              ElementsAre(Names("data.subset", 1, 2, "1 (bee)")));
}

}  // namespace
}  // namespace precast::tools
