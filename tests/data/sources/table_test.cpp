#include "data/sources/table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "data/beton/dtype.h"
#include "data/sources/register.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/opened.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::image_of;
using test::label_of;
using test::Names;
using test::opener;
using testing::AllOf;
using testing::ElementsAre;
using testing::ThrowsMessage;

TEST(TableSource, ColumnsAreFieldsOfTheKindOfTheirValues) {
  const test::TemporaryFolder folder;
  test::make_class_tree(folder / "tree");
  const std::string rows =
      "file\tlabel\tweight\tcaption_of_the_image\n"
      "tree/cat/a.JPEG\t3\t0.5\ta cat\n"
      "tree/dog/1.jpg\t-4\t2\t\"\"\n";
  write_file(folder / "list.tsv", rows);
  std::string commas = rows;
  std::ranges::replace(commas, '\t', ',');
  write_file(folder / "list.csv", commas);
  write_file(
      folder / "list.jsonl",
      R"({"file": "tree/cat/a.JPEG", "label": 3, "weight": 0.5, "caption_of_the_image": "a cat"})"
      "\n\n"
      R"({"weight": 2, "file": "tree/dog/1.jpg", "label": -4, "caption_of_the_image": ""})");
  for (const char* name : {"list.tsv", "list.csv", "list.jsonl"}) {
    const auto source = open_source(folder / name);
    std::vector<std::string> fields;
    for (const SourceField& field : source->fields())
      fields.push_back(field.name + ":" + field.type);
    EXPECT_THAT(fields,
                ElementsAre("file:image", "label:int", "weight:float", "caption_of_the_i:bytes"))
        << name;
    EXPECT_THAT(source->notes(), ElementsAre(testing::Pair("cut_column_names", 1)));
    ASSERT_EQ(source->size(), 2U);
    const Sample sample = source->sample(1);
    EXPECT_EQ(image_of(sample).file, test::read_bytes(folder / "tree" / "dog" / "1.jpg"));
    EXPECT_EQ(label_of(sample), -4);
    EXPECT_EQ(std::get<double>(sample.values[2]), 2.0);
    EXPECT_EQ(std::get<std::string>(sample.values[3]), "");
    EXPECT_THAT(sample.name, Names("row 2"));
  }
}

std::vector<std::string> kinds_of(const Source& source) {
  std::vector<std::string> kinds;
  for (const SourceField& field : source.fields()) kinds.push_back(field.type);
  return kinds;
}

TEST(TableSource, AFirstLineThatIsASampleIsAnError) {
  const test::TemporaryFolder folder;
  const auto opening = [&](const std::string& text) {
    write_file(folder / "a.csv", text);
    return [&folder] { (void)open_source(folder / "a.csv"); };
  };
  for (const auto& [text, name] :
       std::vector<std::pair<std::string, std::string>>{{"x.jpg,cat\ny.jpg,dog\n", "'x.jpg'"},
                                                        {"cat,3\ndog,4\n", "'3'"},
                                                        {"2,0.5\n3,0.25\n", "'2'"},
                                                        {"3,3\n4,5\n", "'3'"},
                                                        {"cat,0\ndog,1\n", "'0'"},
                                                        {"5,0,0,0\n4,0,1,0\n", "'5'"}})
    EXPECT_THAT(opening(text), ThrowsMessage<DataError>(Names(folder / "a.csv", name))) << text;
  // Valid headers, although some names are numbers: years, wavelengths, classes, or the default
  // names that pandas gives to an array or a single column.
  for (const char* text :
       {"id,x\n1,2\n", "0,1,2,label\n5,6,7,cat\n", "1990,1991\n3,4\n", "400.5,401\n0.2,0.1\n",
        "path,3,7,11\nx.jpg,0,1,0\n", "0\n5\n", "2024,n\na text,1\n", "image,label\nx.jpg,1\n"})
    EXPECT_NO_THROW(opening(text)()) << text;
}

TEST(TableSource, TextsOfALabelColumnAreClasses) {
  const test::TemporaryFolder folder;
  write_file(folder / "a.csv", "id,label,note\n5,dog,x\n6,cat,y\n7,dog,z\n");
  write_file(folder / "a.jsonl", R"({"id": 5, "label": "dog", "note": "x"})"
                                 "\n"
                                 R"({"id": 6, "label": "cat", "note": "y"})"
                                 "\n"
                                 R"({"id": 7, "label": "dog", "note": "z"})");
  for (const char* name : {"a.csv", "a.jsonl"}) {
    const auto source = open_source(folder / name);
    EXPECT_THAT(source->class_names(), ElementsAre("cat", "dog")) << name;
    EXPECT_EQ(source->class_field(), "label");
    EXPECT_THAT(kinds_of(*source), ElementsAre("int", "int", "bytes"));
    for (const auto& [row, label] : {std::pair(0, 1), std::pair(1, 0), std::pair(2, 1)}) {
      const Sample sample = source->sample(static_cast<std::uint64_t>(row));
      EXPECT_EQ(std::get<std::int64_t>(sample.values[0]), label) << "the label precedes other ints";
      EXPECT_EQ(std::get<std::int64_t>(sample.values[1]), 5 + row);
    }
  }
}

TEST(TableSource, NumbersStayNumbersAndTextsThatAreAskedForStayTexts) {
  const test::TemporaryFolder folder;
  write_file(folder / "a.csv", "class,label\ndog,3\ncat,1\n");
  const auto numbers = open_source(folder / "a.csv");
  EXPECT_THAT(numbers->class_names(), testing::IsEmpty());
  EXPECT_EQ(numbers->fields()[0].type, "bytes");
  EXPECT_EQ(numbers->fields()[1].type, "int");
  const auto chosen = open_source(folder / "a.csv", "auto", test::option("class_column", "class"));
  EXPECT_THAT(chosen->class_names(), ElementsAre("cat", "dog"));
  EXPECT_EQ(chosen->class_field(), "class");
  write_file(folder / "b.csv", "label,breed\ndog,pug\n");
  const auto texts = open_source(folder / "b.csv", "auto", test::option("texts", "label"));
  EXPECT_EQ(texts->fields()[0].type, "bytes");
  EXPECT_THAT(texts->class_names(), testing::IsEmpty());
}

TEST(TableSource, AClassColumnMustExistAndHaveTexts) {
  const test::TemporaryFolder folder;
  write_file(folder / "a.csv", "breed,count\npug,3\n,1\n");
  const auto opening = [&](const std::string& column) {
    return [&folder, column] {
      (void)open_source(folder / "a.csv", "auto", test::option("class_column", column));
    };
  };
  EXPECT_THAT(opening("bred"),
              ThrowsMessage<ConfigError>(Names("class-column", "bred", "'breed'")));
  EXPECT_THAT(opening("count"), ThrowsMessage<ConfigError>(Names("class-column", "count", "int")));
  EXPECT_THAT(opening("breed"),
              ThrowsMessage<DataError>(Names("row 2", "'breed'", "--field-kind breed=bytes")));
}

TEST(TableSource, NumbersThatWouldBePrintedOtherwiseAreTexts) {
  const test::TemporaryFolder folder;
  // Codes with leading zeros, a negative zero, a plus sign, a space, the payload of a NaN.
  write_file(folder / "a.csv",
             "zip,code,zero,plus,space,nan,weight,count\n"
             "01234,-007,-0,+1, 1,nan(x),-0.50,-10\n"
             "99999,1,2,1,1,1,1e3,0\n");
  const auto source = open_source(folder / "a.csv");
  EXPECT_THAT(kinds_of(*source),
              ElementsAre("bytes", "bytes", "float", "bytes", "bytes", "bytes", "float", "int"));
  const Sample sample = source->sample(0);
  EXPECT_EQ(std::get<std::string>(sample.values[0]), "01234");
  EXPECT_EQ(std::get<std::string>(sample.values[1]), "-007");
  EXPECT_TRUE(std::signbit(std::get<double>(sample.values[2])));
  EXPECT_EQ(std::get<double>(sample.values[6]), -0.5);
  EXPECT_EQ(std::get<std::int64_t>(sample.values[7]), -10);
}

TEST(TableSource, TextsOfJsonAreNeverNumbersAndKeepTheirKindBesideThem) {
  const test::TemporaryFolder folder;
  write_file(folder / "a.jsonl",
             R"({"code": "007", "digit": "1", "mixed": "1", "yes": true, "file": "a.jpg"})"
             "\n"
             R"({"code": "8", "digit": "2", "mixed": 2, "yes": "true", "file": 1})"
             "\n"
             R"({"code": "9", "digit": "3", "mixed": 3, "yes": false, "file": 2})");
  const auto source = open_source(folder / "a.jsonl");
  EXPECT_THAT(kinds_of(*source), ElementsAre("bytes", "bytes", "json", "json", "json"));
  const auto text = [&](std::uint64_t row, std::size_t field) {
    return std::get<std::string>(source->sample(row).values[field]);
  };
  EXPECT_EQ(text(0, 0), "007");
  EXPECT_EQ(text(0, 1), "1");
  EXPECT_EQ(text(0, 2), R"("1")");
  EXPECT_EQ(text(1, 2), "2");
  EXPECT_EQ(text(0, 3), "true");
  EXPECT_EQ(text(1, 3), R"("true")");
}

TEST(TableSource, AFieldRequestedAsTextKeepsTheTextOfTheList) {
  const test::TemporaryFolder folder;
  write_file(folder / "a.csv", "n,x,a_name_of_17_char\n1,1.50,a.jpg\n2,2,b.jpg\n");
  const auto source = open_table(folder / "a.csv", {.texts = {"x", "a_name_of_17_cha"}});
  EXPECT_THAT(kinds_of(*source), ElementsAre("int", "bytes", "bytes"));
  EXPECT_EQ(std::get<std::string>(source->sample(0).values[1]), "1.50");
  EXPECT_EQ(std::get<std::string>(source->sample(1).values[2]), "b.jpg");
}

TEST(TableSource, TheOptionsNameColumnsByTheirHeaders) {
  const test::TemporaryFolder folder;
  write_file(folder / "a.csv", "code,label,a_name_of_17_char\n1,dog,2\n2,cat,3\n");
  const auto source = open_table(folder / "a.csv", {.texts = {"a_name_of_17_char", "label"}});
  EXPECT_THAT(kinds_of(*source), ElementsAre("int", "bytes", "bytes"));
  EXPECT_THAT(source->class_names(), testing::IsEmpty());
  const auto opening = [&](TableOptions options) {
    return [&folder, options] { (void)open_table(folder / "a.csv", options); };
  };
  for (const TableOptions& options :
       {TableOptions{.texts = {"cod"}}, TableOptions{.documents = {"code", "cod"}},
        TableOptions{.floats = {"cod"}}}) {
    EXPECT_THAT(opening(options),
                ThrowsMessage<ConfigError>(Names(folder / "a.csv", "'cod'", "'code'")));
  }
  EXPECT_THAT(opening({.texts = {"code"}, .floats = {"code"}}),
              ThrowsMessage<ConfigError>(Names("'code'", "bytes", "float")));
}

TEST(TableSource, EveryColumnCanBeStoredAsDocuments) {
  const test::TemporaryFolder folder;
  write_file(folder / "a.jsonl",
             R"({"labels": [0, 1], "n": 7, "x": 0.5, "label": "a \"b\"", "file": "a.jpg"})");
  const auto source =
      open_table(folder / "a.jsonl", {.documents = {"labels", "n", "x", "label", "file"}});
  EXPECT_THAT(kinds_of(*source), testing::Each("json"));
  EXPECT_THAT(source->class_names(), testing::IsEmpty());
  const Sample sample = source->sample(0);
  std::vector<std::string> documents;
  for (const Value& value : sample.values) documents.push_back(std::get<std::string>(value));
  EXPECT_THAT(documents, ElementsAre("[0,1]", "7", "0.5", R"("a \"b\"")", R"("a.jpg")"));
  write_file(folder / "a.csv", "box\n\"[0, 1]\"\n");
  const auto cells = open_table(folder / "a.csv", {.documents = {"box"}});
  EXPECT_EQ(cells->fields()[0].type, "json");
  EXPECT_EQ(std::get<std::string>(cells->sample(0).values[0]), "[0, 1]");
}

TEST(TableSource, AColumnOfImagesWithAnotherValueIsAnError) {
  const test::TemporaryFolder folder;
  const auto opening = [&](const std::string& name, const std::string& text,
                           const TableOptions& options = {}) {
    write_file(folder / name, text);
    return [&folder, name, options] { return open_table(folder / name, options); };
  };
  const std::string empty = "n,file\n1,a.jpg\n2,b.jpg\n3,\n4,\n";
  const std::string null = "{\"file\": null}\n{\"file\": \"a.jpg\"}\n";
  EXPECT_THAT([&] { (void)opening("a.csv", empty)(); },
              ThrowsMessage<DataError>(
                  Names(folder / "a.csv", "row 3", "'file'", "--field-kind file=bytes")));
  EXPECT_THAT([&] { (void)opening("b.csv", "file,n\na.jpg,1\nb.txt,2\nc.jpg,3\n")(); },
              ThrowsMessage<DataError>(Names(folder / "b.csv", "row 2", "'file'")));
  EXPECT_THAT([&] { (void)opening("a.jsonl", null)(); },
              ThrowsMessage<DataError>(
                  Names(folder / "a.jsonl", "row 1", "'file'", "--field-kind file=json")));
  // The options say what the column contains.
  const auto kinds = [&](const std::string& name, const std::string& text,
                         const TableOptions& options = {}) {
    return kinds_of(*opening(name, text, options)());
  };
  EXPECT_THAT(kinds("a.csv", empty, {.texts = {"file"}}), ElementsAre("int", "bytes"));
  EXPECT_THAT(kinds("a.jsonl", null, {.documents = {"file"}}), ElementsAre("json"));
  EXPECT_THAT(kinds("c.csv", "kind\na.jpg\nother\n", {.class_column = "kind"}), ElementsAre("int"));
  // A text column may contain some names.
  EXPECT_THAT(kinds("d.csv", "note\na.jpg\nx\ny\n"), ElementsAre("bytes"));
}

/// Bytes that are allocated from the heap; 0 under sanitizers, which use a separate heap.
std::size_t heap_bytes() {
  return ::mallinfo2().uordblks + ::mallinfo2().hblkhd;
}

TEST(TableSource, HoldsEightBytesARow) {
  const test::TemporaryFolder folder;
  constexpr std::size_t kRows = 20'000;
  const std::string cell(100, 'x');
  std::string commas = "a,b\n";
  std::string lines;
  for (std::size_t i = 0; i < kRows; ++i) {
    commas += fmt::format("{},{}\n", i, cell);
    lines += fmt::format("{{\"a\": {}, \"b\": \"{}\"}}\n", i, cell);
  }
  write_file(folder / "a.csv", commas);
  write_file(folder / "a.jsonl", lines);
  for (const char* name : {"a.csv", "a.jsonl"}) {
    const std::size_t before = heap_bytes();
    const auto source = open_source(folder / name);
    if (before > 0) {
      EXPECT_LT(heap_bytes(), before + 12 * kRows) << name;
    }
    ASSERT_EQ(source->size(), kRows);
    EXPECT_EQ(std::get<std::int64_t>(source->sample(kRows - 1).values[0]), kRows - 1);
    EXPECT_EQ(std::get<std::string>(source->sample(7).values[1]), cell);
  }
}

template <typename Number>
std::vector<Number> numbers_of(const Sample& sample, std::size_t field) {
  const auto& bytes = std::get<ArrayInput>(sample.values[field]).elements;
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

TEST(TableSource, ListsOfNumbersOfOneShapeAreArrays) {
  const test::TemporaryFolder folder;
  write_file(
      folder / "a.jsonl",
      R"({"labels": [0, 1, -9223372036854775808], "box": [1, 2.5], "grid": [[1, 2], [3, 4]]})"
      "\n"
      R"({"labels": [1, 0, 9223372036854775807], "box": [3, 4], "grid": [[5, 6], [7, 8]]})");
  const auto source = open_source(folder / "a.jsonl");
  EXPECT_THAT(kinds_of(*source), testing::Each("ndarray"));
  EXPECT_EQ(source->fields()[0].array, (ArrayFormat{"<i8", {3}}));
  EXPECT_EQ(source->fields()[1].array, (ArrayFormat{"<f8", {2}}));
  EXPECT_EQ(source->fields()[2].array, (ArrayFormat{"<i8", {2, 2}}));
  const Sample first = source->sample(0), second = source->sample(1);
  EXPECT_THAT(numbers_of<std::int64_t>(first, 0), ElementsAre(0, 1, INT64_MIN));
  EXPECT_THAT(numbers_of<std::int64_t>(second, 0), ElementsAre(1, 0, INT64_MAX));
  EXPECT_THAT(numbers_of<double>(first, 1), ElementsAre(1, 2.5));
  EXPECT_THAT(numbers_of<double>(second, 1), ElementsAre(3, 4));
  EXPECT_THAT(numbers_of<std::int64_t>(second, 2), ElementsAre(5, 6, 7, 8));
  const auto text = open_source(folder / "a.jsonl", "auto", test::option("texts", "box"));
  EXPECT_EQ(text->fields()[1].type, "bytes");
  EXPECT_EQ(std::get<std::string>(text->sample(0).values[1]), "[1,2.5]");
}

TEST(TableSource, IntegersAreFloatsWhereAskedFor) {
  const test::TemporaryFolder folder;
  write_file(folder / "a.jsonl", R"({"labels": [1, 0], "x": 3, "far": [9007199254740993]})"
                                 "\n"
                                 R"({"labels": [0, 1], "x": 4, "far": [1]})");
  EXPECT_THAT(kinds_of(*open_table(folder / "a.jsonl")), ElementsAre("ndarray", "int", "ndarray"));
  const auto source = open_table(folder / "a.jsonl", {.floats = {"labels", "x"}});
  EXPECT_THAT(kinds_of(*source), ElementsAre("ndarray", "float", "ndarray"));
  EXPECT_EQ(source->fields()[0].array, (ArrayFormat{"<f8", {2}}));
  EXPECT_EQ(source->fields()[2].array, (ArrayFormat{"<i8", {1}}));
  EXPECT_THAT(numbers_of<double>(source->sample(1), 0), ElementsAre(0, 1));
  EXPECT_EQ(std::get<double>(source->sample(1).values[1]), 4.0);
  EXPECT_THAT([&] { (void)open_table(folder / "a.jsonl", {.floats = {"far"}}); },
              ThrowsMessage<ConfigError>(Names(folder / "a.jsonl", "'far'", "ndarray")));
  write_file(folder / "a.csv", "far,name\n9007199254740993,a\n");
  for (const char* name : {"far", "name"}) {
    EXPECT_THAT([&] { (void)open_table(folder / "a.csv", {.floats = {name}}); },
                ThrowsMessage<ConfigError>(Names(folder / "a.csv", name)));
  }
}

TEST(TableSource, OtherListsAreJson) {
  const test::TemporaryFolder folder;
  const std::pair<const char*, const char*> columns[] = {
      {"[]", "[]"},
      {"[1, 2]", "[1]"},
      {"[1, 2]", "[[1], [2]]"},
      {"[[1, 2], [3]]", "[[1, 2], [3]]"},
      {"[1, [2]]", "[1, [2]]"},
      {"[[1], 2]", "[[1], 2]"},
      {"[1, true]", "[1, true]"},
      {"[1, null]", "[1, null]"},
      {"[\"1\"]", "[\"1\"]"},
      {"[1]", "1"},
      {"1", "[1]"},
      {"[1]", "null"},
      {"null", "[1]"},
      // A float64 would round these integers.
      {"[9007199254740993]", "[0.5]"},
      {"[-9007199254740993]", "[0.5]"},
      {"[9223372036854775808]", "[1]"},
  };
  for (const auto& [first, second] : columns) {
    write_file(folder / "a.jsonl", fmt::format("{{\"x\": {}}}\n{{\"x\": {}}}\n", first, second));
    const auto source = open_source(folder / "a.jsonl");
    EXPECT_THAT(kinds_of(*source), ElementsAre("json")) << first << " " << second;
    EXPECT_EQ(nlohmann::json::parse(std::get<std::string>(source->sample(0).values[0])),
              nlohmann::json::parse(first));
  }
  // The value is nested more deeply than the 32 dimensions that an array may have.
  const std::string deep = std::string(33, '[') + "1" + std::string(33, ']');
  write_file(folder / "a.jsonl", fmt::format("{{\"x\": {}}}\n", deep));
  EXPECT_THAT(kinds_of(*open_source(folder / "a.jsonl")), ElementsAre("json"));
}

TEST(TableSource, NestedValuesAreJsonAndDamagedListsAreTold) {
  const test::TemporaryFolder folder;
  write_file(folder / "a.jsonl", "{\"x\": [1, 2], \"y\": 1}\n{\"x\": null, \"y\": 2.5}\n");
  const auto source = open_source(folder / "a.jsonl");
  EXPECT_EQ(source->fields()[0].type, "json");
  EXPECT_EQ(source->fields()[1].type, "float");
  EXPECT_EQ(std::get<std::string>(source->sample(1).values[0]), "null");
  // In a JSON column, strings are stored as JSON, too.
  write_file(folder / "m.jsonl", "{\"x\": \"a \\\"b\"}\n{\"x\": {\"y\": 1}}\n{\"x\": 3}\n");
  const auto mixed = open_source(folder / "m.jsonl");
  EXPECT_EQ(mixed->fields()[0].type, "json");
  EXPECT_EQ(std::get<std::string>(mixed->sample(0).values[0]), R"("a \"b")");
  EXPECT_EQ(std::get<std::string>(mixed->sample(2).values[0]), "3");
  const std::string deep =
      fmt::format("{{\"x\": {}1{}}}", std::string(500'000, '['), std::string(500'000, ']'));
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"h.jsonl", deep},
      {"i.jsonl", "{\"x\": 100000000000000000000}"},
      {"b.jsonl", "{\"x\": 1}\n{\"y\": 1}\n"},
      {"c.jsonl", "{\"x\": 1}\n[]\n"},
      {"d.csv", "a,b\n1,2\n3\n"},
      {"e.csv", ""},
      {"f.csv", "a,b\n"},
      {"g.jsonl", ""},
      {"j.jsonl", "{\"a\": 1, \"c\": 1}\n{\"a\": 2}\n"},
      {"k.jsonl", "{\"a\": 1}\n{\"a\": 2, \"d\": 1}\n"},
      {"l.csv", "caption_of_the_image,b,caption_of_the_icon\n1,2,3\n"}};
  const std::vector<std::vector<std::string>> facts = {
      {"line 1", "64"},
      {"line 1", "64"},
      {"line 2", "1"},
      {"line 2", "JSON"},
      {"row 2", "2", "1"},
      {},
      {},
      {},
      {"line 2", "2", "'c'"},
      {"line 2", "'d'"},
      {"16", "'caption_of_the_image'", "'caption_of_the_icon'"}};
  ASSERT_EQ(facts.size(), bad.size());
  for (std::size_t i = 0; i < bad.size(); ++i) {
    write_file(folder / bad[i].first, bad[i].second);
    EXPECT_THAT(opener(folder / bad[i].first),
                ThrowsMessage<DataError>(
                    AllOf(Names(folder / bad[i].first), test::NamesMatcher(facts[i]))));
  }
}

TEST(TableSource, WholeNumbersAreNeverRounded) {
  const test::TemporaryFolder folder;
  const std::string largest = "9223372036854775807";
  write_file(folder / "a.csv", "a,b,c,d\n" + largest + ",9223372036854775808,9007199254740993,1\n" +
                                   "-9223372036854775808,1,0.5,0.5\n");
  write_file(
      folder / "a.jsonl",
      R"({"a": 9223372036854775807, "b": 9223372036854775808, "c": 9007199254740993, "d": 1})"
      "\n"
      R"({"a": -9223372036854775808, "b": 1, "c": 0.5, "d": 0.5})");
  for (const char* name : {"a.csv", "a.jsonl"}) {
    const auto source = open_source(folder / name);
    EXPECT_THAT(kinds_of(*source), ElementsAre("int", "bytes", "bytes", "float")) << name;
    const Sample sample = source->sample(0);
    EXPECT_EQ(std::get<std::int64_t>(sample.values[0]), INT64_MAX);
    EXPECT_EQ(std::get<std::string>(sample.values[1]), "9223372036854775808");
    EXPECT_EQ(std::get<std::string>(sample.values[2]), "9007199254740993");
  }
}

}  // namespace
}  // namespace precast::data
