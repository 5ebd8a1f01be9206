// What `precast write` chooses as image, label and classes, and what it says about them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "data/beton/file_info.h"
#include "data/beton/reader.h"
#include "data/order/labels.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/precast_run.h"

namespace precast::tools {
namespace {

using test::Names;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ChosenFieldsTest : public testing::Test {
 protected:
  test::PrecastRun write(const std::string& source, std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"write", source, out_});
    return test::precast_run(std::move(options));
  }
  [[nodiscard]] std::string table(const std::string& text) const {
    std::ofstream(folder_ / "a.csv") << text;
    return (folder_ / "a.csv").string();
  }
  /// A file with the int fields `id` and `animal`, of which only the second one has class names.
  [[nodiscard]] std::string ids_and_animals() const {
    const std::string file = (folder_ / "in.beton").string();
    test::write_int_beton(file, {.fields = {"id", "animal"},
                                 .rows = {{0, 0}},
                                 .info = {.classes = {{"animal", {"ant", "bee"}}}, .written = {}}});
    return file;
  }

  test::TemporaryFolder folder_;
  std::string out_ = (folder_ / "out.beton").string();
};

TEST_F(ChosenFieldsTest, AnIntLabelOfATableIsTheDefaultLabel) {
  const auto run = write(table("age,weight,label\n20,0.5,0\n21,1.5,1\n"));
  ASSERT_EQ(run.code, 0) << run.err;
  const data::BetonReader reader(out_);
  const std::size_t label = data::default_label_field(reader);
  EXPECT_EQ(reader.fields().at(label).name, "label");
  EXPECT_EQ(label, reader.first_field(data::FieldType::integer));
  EXPECT_EQ(reader.integer(1, label), 1);
  EXPECT_EQ(reader.integer(1, reader.field("age")), 21);
}

TEST_F(ChosenFieldsTest, TheNoteAboutTheFirstIntFieldIsAboutTheWrittenKinds) {
  const std::string file = ids_and_animals();
  const auto unchanged = write(file);
  ASSERT_EQ(unchanged.code, 0) << unchanged.err;
  EXPECT_THAT(unchanged.out, Names("'animal'"));
  EXPECT_THAT(unchanged.err, Names("'id'", "data.targets: animal"));
  const auto floats = write(file, {"--field-kind", "id=float"});
  ASSERT_EQ(floats.code, 0) << floats.err;
  EXPECT_THAT(floats.out, Names("'animal'"));
  EXPECT_THAT(floats.err, Not(HasSubstr("data.targets")));
}

TEST_F(ChosenFieldsTest, AFieldThatIsNoIntHasNoClasses) {
  const auto run = write(ids_and_animals(), {"--field-kind", "animal=float", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out).at("class_field"), "");
  EXPECT_THAT(data::file_info_of(data::BetonReader(out_)).classes, testing::IsEmpty());
}

TEST_F(ChosenFieldsTest, FieldKindAcceptsTheWholeNameOfAColumn) {
  const std::string list = table("a_name_of_17_char,n\n1.50,2\n");
  for (const char* name : {"a_name_of_17_char", "a_name_of_17_cha"}) {
    const auto run = write(list, {"--field-kind", std::string(name) + "=bytes"});
    ASSERT_EQ(run.code, 0) << run.err;
    const data::BetonReader reader(out_);
    EXPECT_EQ(reader.fields()[0].type, data::FieldType::bytes) << name;
  }
  for (const std::string name : {"a_name", "a_name_of_17_chaX", "a_name_of_17_chars"}) {
    const auto wrong = write(list, {"--field-kind", name + "=float"});
    EXPECT_EQ(wrong.code, 2) << name;
    EXPECT_THAT(wrong.err, Names("--field-kind", "'" + name + "'"));
  }
}

TEST_F(ChosenFieldsTest, FieldKindAcceptsTheWholeNameOfAMember) {
  const std::filesystem::path samples = folder_ / "samples";
  test::put_file(samples / "0.jpg", test::jpeg_file(test::gradient(8, 8)));
  std::ofstream(samples / "0.a_name_of_17_char") << "text";
  test::make_tar(folder_ / "a.tar", samples, "");
  const std::string tar = (folder_ / "a.tar").string();
  for (const auto& [name, code] :
       {std::pair("a_name_of_17_char", 0), {"a_name_of_17_cha", 0}, {"a_name_of_17_chaX", 2}}) {
    const auto run = write(tar, {"--field-kind", std::string(name) + "=bytes"});
    EXPECT_EQ(run.code, code) << name << run.err;
  }
}

TEST_F(ChosenFieldsTest, WhatBecameTheImageAndTheLabelIsPrinted) {
  const std::filesystem::path samples = folder_ / "samples";
  test::put_file(samples / "0.jpg", test::jpeg_file(test::gradient(8, 8)));
  test::put_file(samples / "0.depth.jpg", test::jpeg_file(test::gradient(8, 8)));
  std::ofstream(samples / "0.cls") << "7";
  test::make_tar(folder_ / "a.tar", samples, "");
  const auto run = write((folder_ / "a.tar").string());
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out,
              AllOf(Names("'image'", "'jpg'", "'label'", "'cls'"), Not(HasSubstr("'depth.jpg'"))));
}

}  // namespace
}  // namespace precast::tools
