// Tests which column of a table has the labels, and which names columns may have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/sources/register.h"
#include "data/sources/table.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/data/sources/opened.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;
using test::opener;
using testing::ElementsAre;
using testing::ThrowsMessage;

std::vector<std::string> names_of(const Source& source) {
  std::vector<std::string> names;
  for (const SourceField& field : source.fields()) names.push_back(field.name);
  return names;
}

TEST(TableLabels, PrecedeAllOtherInts) {
  const test::TemporaryFolder folder;
  write_file(folder / "a.csv", "weight,age,note,n,label\n0.5,20,x,7,0\n1.5,21,y,8,1\n");
  write_file(folder / "a.jsonl", R"({"weight": 0.5, "age": 20, "note": "x", "n": 7, "label": 0})"
                                 "\n"
                                 R"({"weight": 1.5, "age": 21, "note": "y", "n": 8, "label": 1})");
  for (const char* name : {"a.csv", "a.jsonl"}) {
    const auto source = open_source(folder / name);
    EXPECT_THAT(names_of(*source), ElementsAre("weight", "label", "age", "note", "n")) << name;
    const Sample sample = source->sample(1);
    EXPECT_EQ(std::get<double>(sample.values[0]), 1.5);
    EXPECT_EQ(std::get<std::int64_t>(sample.values[1]), 1);
    EXPECT_EQ(std::get<std::int64_t>(sample.values[2]), 21);
    EXPECT_EQ(std::get<std::string>(sample.values[3]), "y");
    EXPECT_EQ(std::get<std::int64_t>(sample.values[4]), 8);
  }
}

TEST(TableLabels, AreClassNamesElseTheFirstIntsWithSuchAName) {
  const test::TemporaryFolder folder;
  const auto fields_of = [&](const std::string& text, const TableOptions& options = {}) {
    write_file(folder / "a.csv", text);
    return names_of(*open_table(folder / "a.csv", options));
  };
  EXPECT_THAT(fields_of("id,class,label\n1,dog,3\n"), ElementsAre("label", "id", "class"));
  EXPECT_THAT(fields_of("id,class,label\n1,dog,3\n", {.class_column = "class"}),
              ElementsAre("class", "id", "label"));
  EXPECT_THAT(fields_of("id,category,target\n1,2,3\n"), ElementsAre("category", "id", "target"));
  EXPECT_THAT(fields_of("id,Label\n1,3\n"), ElementsAre("Label", "id"));
  EXPECT_THAT(fields_of("id,TARGETS\n1,3\n"), ElementsAre("TARGETS", "id"));
  EXPECT_THAT(fields_of("id,class,class_id\n1,dog,3\n"), ElementsAre("class", "id", "class_id"));
  EXPECT_THAT(fields_of("id,label\n1,0.5\n"), ElementsAre("id", "label"));
  EXPECT_THAT(fields_of("id,label\n1,3\n", {.texts = {"label"}}), ElementsAre("id", "label"));
}

TEST(TableLabels, OfDigitsAreLookedUpInTheGivenClasses) {
  const test::TemporaryFolder folder;
  // In the training set these classes are texts, because one is not a number.
  write_file(folder / "names.txt", "10\n7\ncat\n");
  const std::string names = (folder / "names.txt").string();
  write_file(folder / "a.csv", "id,label\n5,7\n6,10\n");
  write_file(folder / "a.jsonl", "{\"id\": 5, \"label\": 7}\n{\"id\": 6, \"label\": 10}\n");
  for (const char* name : {"a.csv", "a.jsonl"}) {
    for (const char* column : {"", "label"}) {
      const auto source = open_table(folder / name, {.class_column = column, .classes = names});
      EXPECT_THAT(names_of(*source), ElementsAre("label", "id")) << name;
      EXPECT_THAT(source->class_names(), ElementsAre("10", "7", "cat"));
      EXPECT_EQ(source->class_field(), "label");
      EXPECT_EQ(std::get<std::int64_t>(source->sample(0).values[0]), 1);
      EXPECT_EQ(std::get<std::int64_t>(source->sample(1).values[0]), 0);
    }
    // Without the list, the integers are the labels, and no column has class names.
    const auto labels = open_table(folder / name);
    EXPECT_THAT(labels->class_names(), testing::IsEmpty());
    EXPECT_EQ(std::get<std::int64_t>(labels->sample(0).values[0]), 7);
    EXPECT_THAT(
        [&] { (void)open_table(folder / name, {.class_column = "label"}); },
        ThrowsMessage<ConfigError>(Names("--class-column", "--class-names", "'label'", "int")));
  }
}

TEST(TableLabels, ThatAreNotAmongTheGivenClassesAreAnError) {
  const test::TemporaryFolder folder;
  write_file(folder / "names.txt", "cat\ndog\n");
  const std::string names = (folder / "names.txt").string();
  write_file(folder / "a.csv", "class,label\ndog,1\ncat,0\n");
  // A number is never taken as the position of a class in the list.
  EXPECT_THAT([&] { (void)open_table(folder / "a.csv", {.classes = names}); },
              ThrowsMessage<DataError>(
                  Names(folder / "a.csv", "row 1", 2, "'label'", "'1'", "--class-column")));
  const auto source = open_table(folder / "a.csv", {.class_column = "class", .classes = names});
  EXPECT_EQ(std::get<std::int64_t>(source->sample(0).values[0]), 1);
  write_file(folder / "b.csv", "id,weight\n1,0.5\n");
  EXPECT_THAT(
      [&] { (void)open_table(folder / "b.csv", {.classes = names}); },
      ThrowsMessage<ConfigError>(Names("--class-names", folder / "b.csv", "--class-column")));
}

TEST(ColumnNames, ThatAFieldCannotHaveAreNamedWithTheirPlace) {
  const test::TemporaryFolder folder;
  const auto opening = [&](const std::string& text) {
    write_file(folder / "a.csv", text);
    return opener(folder / "a.csv");
  };
  // By default, pandas writes the index as a first column without a name.
  EXPECT_THAT(opening(",image,label\n0,a.jpg,1\n"),
              ThrowsMessage<DataError>(Names(folder / "a.csv", "column 1", "index=False")));
  EXPECT_THAT(opening("image,label,\na.jpg,1,\n"),
              ThrowsMessage<DataError>(Names(folder / "a.csv", "column 3")));
  EXPECT_THAT(opening("image,étiquette\na.jpg,1\n"),
              ThrowsMessage<DataError>(Names(folder / "a.csv", "column 2", "'étiquette'")));
  write_file(folder / "a.jsonl", R"({"n": 1, "": 2})");
  EXPECT_THAT(opener(folder / "a.jsonl"),
              ThrowsMessage<DataError>(Names(folder / "a.jsonl", "column 2")));
  // A dataset stores 16 bytes of a name, and the letter that is not ASCII comes after them.
  EXPECT_NO_THROW(opening("a_name_of_16_chaé\n1\n")());
}

}  // namespace
}  // namespace precast::data
