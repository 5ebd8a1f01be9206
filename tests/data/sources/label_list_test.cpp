#include "data/sources/label_list.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "data/beton/file_info.h"
#include "data/sources/register.h"
#include "data/write/writer.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/opened.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;
using testing::ElementsAre;
using testing::ThrowsMessage;

class LabelListTest : public testing::Test {
 protected:
  /// A line `path label` for each file to which the list `text` assigns a class.
  std::vector<std::string> arranged(const std::string& text,
                                    const std::vector<std::string>& classes = {}) {
    write_file(folder_ / "labels", text);
    const ClassFiles files = arrange_by_list(paths_, folder_ / "labels", {classes}, "val");
    names_ = files.class_names;
    skipped_ = files.skipped.count();
    std::vector<std::string> lines;
    for (const ClassFile& file : files.files)
      lines.push_back(fmt::format("{} {}", paths_[file.path], file.label));
    return lines;
  }
  auto opener(const std::string& text, const std::vector<std::string>& classes = {}) {
    return [=, this] { (void)arranged(text, classes); };
  }

  std::vector<std::string> paths_ = {"v_3.JPEG", "v_1.JPEG", "v_2.JPEG", "README.txt"};
  test::TemporaryFolder folder_;
  std::vector<std::string> names_;
  std::uint64_t skipped_ = 0;
};

TEST_F(LabelListTest, ListsOfNamesAndOfClassesAndKagglesGiveTheSame) {
  for (const char* text :
       {"v_2.JPEG n02\nv_1.JPEG n03\nv_3.JPEG n01\n", "val/v_2,n02\r\nv_1,n03\r\nv_3,n01",
        "\xEF\xBB\xBFv_3\tn01\n\nv_2\tn02\nv_1\tn03\n", "n03\nn02\nn01\n",
        "ImageId,PredictionString\nv_1,n03 1 2 3 4 n03 5 6 7 8 \nv_3,n01 1 2 3 4\nv_2,n02 1 2 3 "
        "4\n"}) {
    EXPECT_THAT(arranged(text), ElementsAre("v_3.JPEG 0", "v_2.JPEG 1", "v_1.JPEG 2")) << text;
    EXPECT_THAT(names_, ElementsAre("n01", "n02", "n03"));
    EXPECT_EQ(skipped_, 1U);
  }
}

TEST_F(LabelListTest, ClassesInOrderBelongToTheNamesWithTheirExtensions) {
  paths_ = {"IMG_2.png", "IMG_1.png", "b/IMG_1-2.png", "a (2).jpg", "a.jpg"};
  EXPECT_THAT(
      arranged("n01\nn02\nn03\nn04\nn05\n"),
      ElementsAre("b/IMG_1-2.png 0", "IMG_1.png 1", "IMG_2.png 2", "a (2).jpg 3", "a.jpg 4"));
}

TEST_F(LabelListTest, NumbersAndLabelsCountTheClassesInTheOrderOfTheirFile) {
  const std::vector<std::string> ilsvrc = {"n05", "n03", "n01", "n02"};
  EXPECT_THAT(arranged("3\n1\n3\n", ilsvrc), ElementsAre("v_2.JPEG 0", "v_1.JPEG 2", "v_3.JPEG 2"));
  EXPECT_EQ(names_, ilsvrc);
  EXPECT_THAT(arranged("v_1 2\nv_2 n02\nv_3 4\n", ilsvrc),
              ElementsAre("v_1.JPEG 1", "v_2.JPEG 3", "v_3.JPEG 3"));
  EXPECT_THAT(opener("490\n361\n171\n"),
              ThrowsMessage<DataError>(Names("line 1", 490, "--class-names")));
  EXPECT_THAT(opener("0\n1\n2\n", ilsvrc), ThrowsMessage<DataError>(Names("line 1", 1, 4, 0)));
  EXPECT_THAT(opener("1\n5\n2\n", ilsvrc), ThrowsMessage<DataError>(Names("line 2", 1, 4, 5)));
  EXPECT_THAT(opener("n01\nn04\nn02\n", ilsvrc),
              ThrowsMessage<DataError>(Names("line 2", 4, "--class-names", "'n04'")));
}

TEST_F(LabelListTest, EmptyLinesOfTheClassesAreNotCountedByNumbers) {
  write_file(folder_ / "classes", "\nn05\n\n \t\nn03\nn01\n\n");
  const std::vector<std::string> classes = read_class_list(folder_ / "classes");
  EXPECT_THAT(arranged("v_1 1\nv_2 2\nv_3 3\n", classes),
              ElementsAre("v_1.JPEG 0", "v_2.JPEG 1", "v_3.JPEG 2"));
  EXPECT_THAT(names_, ElementsAre("n05", "n03", "n01"));
  EXPECT_THAT(opener("5\n1\n2\n", classes),
              ThrowsMessage<DataError>(Names("line 1", "--class-names", 1, 3, 5)));
}

TEST_F(LabelListTest, MissingAndSurplusNamesAreNamed) {
  EXPECT_THAT(opener("v_1 n01\nv_4 n01\nv_5 n01\n"),
              ThrowsMessage<DataError>(Names(2, "v_2.JPEG, v_3.JPEG", "v_4, v_5")));
  std::string many = "v_1 n01\nv_2 n01\nv_3 n01\n";
  for (int i = 10; i < 20; ++i) many += fmt::format("v_{} n01\n", i);
  EXPECT_THAT(opener(many),
              ThrowsMessage<DataError>(Names(0, 10, "v_10, v_11, v_12, v_13, v_14", 5)));
  EXPECT_THAT(opener("v_1 n01\nv_1 n01\nv_2 n02\n"),
              ThrowsMessage<DataError>(Names("line 2", "'v_1'")));
  EXPECT_THAT(opener("n01\nn02\n"), ThrowsMessage<DataError>(Names(3, "val", 2)));
  EXPECT_THAT(opener(""), ThrowsMessage<DataError>(Names(3, "val", 0)));
  EXPECT_THAT(opener("v_1 n01\nn02\nv_3 n01\n"), ThrowsMessage<DataError>(Names("line 2", 1)));
  paths_.push_back("more/v_1.png");
  EXPECT_THAT(opener("n01\nn02\nn03\nn04\n"),
              ThrowsMessage<DataError>(Names("v_1.JPEG", "more/v_1.png")));
}

TEST_F(LabelListTest, AListOfClassesMayHaveNamesOfSeveralWords) {
  write_file(folder_ / "classes", "polar bear\r\ncat\npolar fox\n");
  EXPECT_THAT(read_class_list(folder_ / "classes", {"cat", "polar fox"}),
              ElementsAre("polar bear", "cat", "polar fox"));
  for (const char* name : {"cat/1.jpg", "polar fox/2.jpg"})
    test::put_file(folder_ / "tree" / name, test::jpeg_file(test::gradient(8, 8)));
  write_file(folder_ / "list.csv",
             "file,label\ntree/cat/1.jpg,cat\ntree/polar fox/2.jpg,polar fox\n");
  for (const char* name : {"tree", "list.csv"}) {
    const auto source =
        open_source(folder_ / name, "auto", test::option("classes", folder_ / "classes"));
    EXPECT_THAT(source->class_names(), ElementsAre("polar bear", "cat", "polar fox")) << name;
    EXPECT_EQ(test::label_of(source->sample(0)), 1);
    EXPECT_EQ(test::label_of(source->sample(1)), 2);
  }
}

TEST_F(LabelListTest, OfWordNetsListsTheClassesOfATableAreTheFirstWords) {
  write_file(folder_ / "classes", "n01440764 tench, Tinca tinca\nn01443537 goldfish\n");
  EXPECT_THAT(read_class_list(folder_ / "classes", {"n01443537", "n01440764"}),
              ElementsAre("n01440764", "n01443537"));
  write_file(folder_ / "list.csv", "x,label\n0.5,n01443537\n");
  const auto source =
      open_source(folder_ / "list.csv", "auto", test::option("classes", folder_ / "classes"));
  EXPECT_THAT(source->class_names(), ElementsAre("n01440764", "n01443537"));
  EXPECT_EQ(test::label_of(source->sample(0)), 1);
}

TEST_F(LabelListTest, AListOfClassesIsTheFirstWordOfItsLines) {
  write_file(folder_ / "classes", "n02 tench, Tinca tinca\nn01 goldfish\n\n");
  EXPECT_THAT(read_class_list(folder_ / "classes"), ElementsAre("n02", "n01"));
  write_file(folder_ / "classes", "n02\nn01\nn02\n");
  EXPECT_THAT([&] { (void)read_class_list(folder_ / "classes"); },
              ThrowsMessage<DataError>(Names(folder_ / "classes", "'n02'")));
  write_file(folder_ / "classes", "\n");
  EXPECT_THROW((void)read_class_list(folder_ / "classes"), DataError);
  EXPECT_THROW((void)read_class_list(folder_ / "none"), IoError);
}

TEST_F(LabelListTest, AValidationTarWithItsListIsTheTreeOfItsClassFolders) {
  const auto make_jpeg = [](int i) { return test::jpeg_file(test::gradient(20, 20 + i, i)); };
  const std::vector<std::string> classes = {"n02", "n01", "n02", "n03"};
  std::string list;
  for (int i = 0; i < 4; ++i) {
    const std::string name = fmt::format("ILSVRC2012_val_0000000{}.JPEG", i + 1);
    test::put_file(folder_ / "flat" / name, make_jpeg(i));
    test::put_file(folder_ / "tree" / classes[static_cast<std::size_t>(i)] / name, make_jpeg(i));
    list += fmt::format("{} {}\n", name, classes[static_cast<std::size_t>(i)]);
  }
  test::make_tar(folder_ / "val.tar", folder_ / "flat", "");
  write_file(folder_ / "list.txt", list);
  const auto tree = open_source(folder_ / "tree");
  for (const char* name : {"val.tar", "flat"}) {
    const auto labelled =
        open_source(folder_ / name, "auto", test::option("labels", folder_ / "list.txt"));
    EXPECT_EQ(labelled->class_names(), tree->class_names());
    ASSERT_EQ(labelled->size(), tree->size());
    for (std::uint64_t i = 0; i < tree->size(); ++i) {
      const Sample ours = labelled->sample(i);
      const Sample theirs = tree->sample(i);
      EXPECT_EQ(std::get<ImageInput>(ours.values[0]).file,
                std::get<ImageInput>(theirs.values[0]).file);
      EXPECT_EQ(std::get<std::int64_t>(ours.values[1]), std::get<std::int64_t>(theirs.values[1]));
    }
  }
  EXPECT_THAT([&] { (void)open_source(folder_ / "val.tar"); },
              ThrowsMessage<DataError>(Names(folder_ / "val.tar", "--labels", 4)));
}

TEST_F(LabelListTest, ASplitWithFewerClassesGetsTheLabelsOfAll) {
  for (const char* name : {"b/1.jpg", "d/2.jpg"})
    test::put_file(folder_ / "tree" / name, test::jpeg_file(test::gradient(8, 8)));
  std::filesystem::create_directory(folder_ / "tree" / "c");
  write_file(folder_ / "classes", "d\nc\nb\na\n");
  const auto source =
      open_source(folder_ / "tree", "auto", test::option("classes", folder_ / "classes"));
  // The classes are in the order of the file, which is not sorted.
  EXPECT_THAT(source->class_names(), ElementsAre("d", "c", "b", "a"));
  EXPECT_EQ(test::label_of(source->sample(0)), 0);
  EXPECT_EQ(test::label_of(source->sample(1)), 2);
  write_file(folder_ / "list.csv", "file,label\ntree/b/1.jpg,b\ntree/d/2.jpg,d\n");
  const auto table =
      open_source(folder_ / "list.csv", "auto", test::option("classes", folder_ / "classes"));
  EXPECT_THAT(table->class_names(), ElementsAre("d", "c", "b", "a"));
  EXPECT_EQ(test::label_of(table->sample(0)), 2);
  EXPECT_EQ(test::label_of(table->sample(1)), 0);
  write_file(folder_ / "classes", "a\nb\n");
  EXPECT_THAT(
      [&] {
        (void)open_source(folder_ / "tree", "auto", test::option("classes", folder_ / "classes"));
      },
      ThrowsMessage<DataError>(Names(2, "--class-names", "'d'")));
}

TEST_F(LabelListTest, ASplitWithFewerClassesGetsTheLabelsOfATrainingSet) {
  for (const char* name : {"b/1.jpg", "d/2.jpg"})
    test::put_file(folder_ / "tree" / name, test::jpeg_file(test::gradient(8, 8)));
  // The training set lists its classes in an order that is not sorted.
  const std::vector<std::string> names = {"d", "c", "b", "a"};
  const auto write_train = [&](const FileInfo& info) {
    BetonLayout layout;
    layout.info = file_info_text(info);
    BetonWriter writer(folder_ / "train.beton", {{"label", FieldType::integer}}, 1, layout);
    EncodedValue value;
    value.metadata.resize(8);
    writer.add({&value, 1});
    writer.finish();
  };
  write_train({.classes = {{"label", names}}, .written = {}});
  const auto options = test::option("classes", folder_ / "train.beton");
  const auto source = open_source(folder_ / "tree", "auto", options);
  EXPECT_EQ(source->class_names(), names);
  EXPECT_EQ(test::label_of(source->sample(0)), 0);
  EXPECT_EQ(test::label_of(source->sample(1)), 2);
  write_file(folder_ / "list.csv", "file,label\ntree/b/1.jpg,b\ntree/d/2.jpg,d\n");
  const auto table = open_source(folder_ / "list.csv", "auto", options);
  EXPECT_EQ(table->class_names(), names);
  EXPECT_EQ(test::label_of(table->sample(0)), 2);
  EXPECT_EQ(test::label_of(table->sample(1)), 0);
  write_file(folder_ / "list.csv", "file,label\ntree/b/1.jpg,b\ntree/d/2.jpg,e\n");
  EXPECT_THAT([&] { (void)open_source(folder_ / "list.csv", "auto", options); },
              ThrowsMessage<DataError>(Names("row 2", "'label'", 4, "'e'")));
  write_train({});
  EXPECT_THAT([&] { (void)open_source(folder_ / "tree", "auto", options); },
              ThrowsMessage<DataError>(Names(folder_ / "train.beton")));
  // Two classes have the same name, so it is unknown which of them an image belongs to.
  write_train({.classes = {{"label", {"d", "b", "d", "a"}}}, .written = {}});
  write_file(folder_ / "list.csv", "file,label\ntree/b/1.jpg,b\ntree/d/2.jpg,a\n");
  write_file(folder_ / "labels", "1.jpg b\n2.jpg a\n");
  ConfigNode with_labels = options;
  with_labels.entries.push_back(test::option("labels", folder_ / "labels").entries[0]);
  for (const auto& input : {std::pair("tree", options), std::pair("list.csv", options),
                            std::pair("tree", with_labels)}) {
    EXPECT_THAT([&] { (void)open_source(folder_ / input.first, "auto", input.second); },
                ThrowsMessage<DataError>(Names(folder_ / "train.beton", "'d'", 0, 2)));
  }
}

TEST_F(LabelListTest, ALabelIsAPositionEvenAfterAClassNameThatOccursTwice) {
  EXPECT_THAT(arranged("v_1 c\nv_2 b\nv_3 a\n", {"a", "b", "a", "c"}),
              ElementsAre("v_3.JPEG 0", "v_2.JPEG 1", "v_1.JPEG 3"));
}

TEST_F(LabelListTest, KindsThatBringTheirLabelsRefuseLists) {
  test::write_bytes(folder_ / "a.beton", test::golden_beton("scalars_only"));
  EXPECT_THAT(
      [&] { (void)open_source(folder_ / "a.beton", "auto", test::option("labels", "list.txt")); },
      ThrowsMessage<ConfigError>(Names("beton", "labels")));
}

TEST_F(LabelListTest, ClassesCalledByNumbersAreTakenByTheirNames) {
  EXPECT_THAT(arranged("v_1 1\nv_2 2\nv_3 3\n", {"0", "1", "2", "3"}),
              ElementsAre("v_1.JPEG 1", "v_2.JPEG 2", "v_3.JPEG 3"));
}

}  // namespace
}  // namespace precast::data
