#include "data/order/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/beton/file_info.h"
#include "data/beton/reader.h"
#include "data/write/writer.h"
#include "framework/core/error.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;

class LabelFieldTest : public testing::Test {
 protected:
  /// The default label field of a file with the fields `weight` (float), `id` and `class` (int).
  std::size_t default_of(const FileInfo& info) {
    BetonLayout layout;
    layout.info = file_info_text(info);
    BetonWriter writer(path_,
                       {{"weight", FieldType::floating},
                        {"id", FieldType::integer},
                        {"class", FieldType::integer}},
                       1, layout);
    std::vector<EncodedValue> values(3);
    for (EncodedValue& value : values) value.metadata.resize(8);
    writer.add(values);
    writer.finish();
    const BetonReader reader(path_);
    EXPECT_EQ(label_field(reader, ""), default_label_field(reader));
    return default_label_field(reader);
  }

  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "a.beton";
};

TEST_F(LabelFieldTest, IsTheFirstOneWithClassNamesElseTheFirst) {
  EXPECT_EQ(default_of({}), 1U);
  EXPECT_EQ(default_of({.classes = {{"class", {"cat", "dog"}}}, .written = {}}), 2U);
  EXPECT_EQ(default_of({.classes = {{"id", {"a"}}, {"class", {"cat"}}}, .written = {}}), 1U);
  EXPECT_EQ(default_of({.classes = {{"weight", {"a"}}, {"class", {}}}, .written = {}}), 1U);
}

TEST_F(LabelFieldTest, CanBeNamedAndMustBeAnInt) {
  (void)default_of({.classes = {{"class", {"cat", "dog"}}}, .written = {}});
  const BetonReader reader(path_);
  EXPECT_EQ(label_field(reader, "id"), 1U);
  for (const char* name : {"weight", "none"})
    EXPECT_THAT([&] { (void)label_field(reader, name); },
                testing::ThrowsMessage<ConfigError>(Names("label_field", name, path_)));
  const test::TemporaryFolder folder;
  BetonWriter writer(folder / "floats.beton", {{"weight", FieldType::floating}}, 1, {});
  EncodedValue value;
  value.metadata.resize(8);
  writer.add({&value, 1});
  writer.finish();
  const BetonReader floats(folder / "floats.beton");
  EXPECT_EQ(default_label_field(floats), 1U);
  EXPECT_THROW((void)label_field(floats, ""), ConfigError);
}

}  // namespace
}  // namespace precast::data
