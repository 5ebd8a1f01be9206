// Tests custom fields in a file that FFCV wrote (tests/golden/beton/make_custom.py) and in
// precast's own files.
#include "data/write/custom_field.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "data/beton/reader.h"
#include "data/jobs/write_dataset.h"
#include "data/sources/beton.h"
#include "data/write/number_fields.h"
#include "data/write/register.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;
using testing::IsEmpty;
using testing::SizeIs;
using testing::ThrowsMessage;

std::vector<float> floats_of(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<float> expected_boxes(std::uint64_t sample) {
  std::vector<float> values(4 * (sample % 3 + 1));
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = 100 * static_cast<float>(sample) + static_cast<float>(k);
  return values;
}

class CustomFields : public ::testing::Test {
 protected:
  CustomFields() { test::write_bytes(path_, test::golden_beton("custom_w1")); }

  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "custom.beton";
  const BetonOptions layouts_ = {{{"boxes", {10, 1, {}}}, {"point", {24, 8, {}}}}};
  const BetonOptions layouts_with_pointer_ = {{{"boxes", {10, 1, 0}}, {"point", {24, 8, {}}}}};
};

TEST_F(CustomFields, OfOtherProgramsAreRefusedWithTheOptionToAdd) {
  EXPECT_THAT([&] { BetonReader reader(path_); },
              ThrowsMessage<DataError>(Names("field 1", "--field-layout boxes=BYTES:ALIGNMENT")));
  EXPECT_THAT(
      [&] {
        BetonReader(path_, BlobAccess::mapped, {{{"boxes", {10, 1, {}}}}});
      },
      ThrowsMessage<DataError>(Names("--field-layout point=BYTES:ALIGNMENT")));
}

TEST_F(CustomFields, LetOtherFieldsBeReadIfTheirLayoutIsGiven) {
  for (const BlobAccess access : {BlobAccess::mapped, BlobAccess::on_disk}) {
    const BetonReader reader(path_, access, layouts_);
    ASSERT_EQ(reader.size(), 5U);
    for (std::uint64_t i = 0; i < reader.size(); ++i) {
      EXPECT_EQ(reader.integer(i, 0), static_cast<std::int64_t>(10 + i));
      EXPECT_EQ(reader.floating(i, 4), static_cast<double>(i) / 4);
      EXPECT_EQ(reader.blob_bytes(i, 2), 6U);
      const auto point = reader.metadata(i, 3);
      ASSERT_THAT(point, SizeIs(24));
      EXPECT_EQ(load<float>(point.data()), static_cast<float>(i) / 2);
      EXPECT_EQ(load<double>(point.data() + 8), -static_cast<double>(i));
      EXPECT_EQ(load<std::uint8_t>(point.data() + 16), i);
    }
  }
}

TEST_F(CustomFields, ShowTheBytesThatNoKnownFieldPointsTo) {
  const BetonReader reader(path_, BlobAccess::mapped, layouts_);
  for (std::uint64_t i = 0; i < reader.size(); ++i) {
    EXPECT_EQ(reader.blob_bytes(i, 1), 0U);
    EXPECT_THAT(reader.blob(i, 1), IsEmpty());
    ASSERT_THAT(reader.unclaimed(i), SizeIs(1));
    EXPECT_EQ(floats_of(reader.bytes_of(reader.unclaimed(i)[0])), expected_boxes(i));
  }
}

TEST_F(CustomFields, GiveTheirValueIfThePointerOffsetIsGiven) {
  const BetonReader reader(path_, BlobAccess::mapped, layouts_with_pointer_);
  for (std::uint64_t i = 0; i < reader.size(); ++i) {
    EXPECT_THAT(reader.unclaimed(i), IsEmpty());
    EXPECT_EQ(floats_of(reader.blob(i, 1)), expected_boxes(i));
  }
}

TEST_F(CustomFields, RefuseOptionsForFieldsThatAreNoneOrNotCustom) {
  for (const char* name : {"label", "boxen"}) {
    BetonOptions options = layouts_;
    options.layouts[name] = {8, 8, {}};
    EXPECT_THAT([&] { BetonReader(path_, BlobAccess::mapped, options); },
                ThrowsMessage<ConfigError>(Names(name)));
  }
}

TEST_F(CustomFields, WrongLayoutsAreDetectedByInvalidPointers) {
  EXPECT_THAT(
      [&] {
        BetonReader(path_, BlobAccess::mapped, {{{"boxes", {9, 1, {}}}, {"point", {24, 8, {}}}}});
      },
      ThrowsMessage<DataError>(Names("'note'")));
}

/// Writes the samples of the source with the registered fields.
void write_again(const Source& source, const std::filesystem::path& out) {
  FieldRegistry registry("field");
  register_fields(registry);
  std::vector<FieldPlan> plans;
  for (const SourceField& field : source.fields()) {
    plans.push_back({field.name, [&registry, field] {
                       FieldInputs options;
                       options.array = field.array;
                       options.tag = field.tag;
                       options.arguments = field.arguments;
                       return registry.make({field.type}, options);
                     }});
  }
  (void)write_dataset(out, plans, source.size(), [&](std::uint64_t i) { return source.sample(i); },
                      {});
}

TEST_F(CustomFields, StoreTheirLayoutWhenTheyAreWrittenAgain) {
  write_again(*open_beton(path_, layouts_with_pointer_), folder_ / "ours.beton");
  const BetonReader golden(path_, BlobAccess::mapped, layouts_with_pointer_);
  const BetonReader ours(folder_ / "ours.beton");
  EXPECT_EQ(ours.fields()[1].layout, (FieldLayout{10, 1, 0}));
  EXPECT_EQ(ours.fields()[3].layout, (FieldLayout{24, 8, {}}));
  for (std::uint64_t i = 0; i < golden.size(); ++i) {
    EXPECT_EQ(floats_of(ours.blob(i, 1)), expected_boxes(i));
    EXPECT_EQ(ours.integer(i, 0), golden.integer(i, 0));
    EXPECT_TRUE(std::ranges::equal(ours.metadata(i, 3), golden.metadata(i, 3)));
    EXPECT_TRUE(std::ranges::equal(ours.blob(i, 2), golden.blob(i, 2)));
    EXPECT_NO_THROW(ours.check_value(i, 1, ours.blob(i, 1)));
  }
}

TEST_F(CustomFields, WithBytesAtUnknownOffsetsAreNotCopied) {
  EXPECT_THAT([&] { write_again(*open_beton(path_, layouts_), folder_ / "ours.beton"); },
              ThrowsMessage<Error>(Names("--field-layout boxes=BYTES:ALIGNMENT:POINTER")));
}

TEST(CustomField, RefusesValuesThatItsLayoutDoesNotHold) {
  EncodedValue out;
  CustomField field({4, 4, {}}, {});
  EXPECT_THAT([&] { field.encode(std::int64_t{3}, 0, out); },
              ThrowsMessage<DataError>(Names("custom field")));
  EXPECT_THAT([&] { field.encode(CustomInput{std::vector<std::byte>(5)}, 0, out); },
              ThrowsMessage<DataError>(Names("custom field", 4, 5)));
  EXPECT_THAT(
      [&] {
        field.encode(CustomInput{std::vector<std::byte>(4), std::vector<std::byte>(1)}, 0, out);
      },
      ThrowsMessage<DataError>(
          Names("custom field", "--field-layout NAME=BYTES:ALIGNMENT:POINTER")));
  std::vector<std::byte> full(kFieldArgumentsBytes, std::byte{1});
  EXPECT_THAT(
      [&] {
        CustomField({4, 4, {}}, full);
      },
      ThrowsMessage<ConfigError>(Names("custom field", 768, 1023)));
  EXPECT_THAT([&] { CustomField({4, 3, {}}, {}); }, ThrowsMessage<ConfigError>(Names("layout")));
}

/// A field as a plug-in could define it: a point of two numbers, stored only in the metadata.
class PointField final : public Field {
 public:
  [[nodiscard]] FieldType type() const override { return FieldType::custom; }
  [[nodiscard]] std::vector<std::byte> arguments() const override {
    std::vector<std::byte> arguments;
    if (tagged_) put_tag({.kind = FieldTag::Kind::custom, .layout = {12, 4, {}}}, arguments);
    return arguments;
  }
  void encode(const Value& value, std::uint64_t sample, EncodedValue& out) override {
    out.metadata.resize(12);
    store(out.metadata.data(), std::get<std::int64_t>(value));
    store(out.metadata.data() + 8, static_cast<std::uint32_t>(sample));
  }
  explicit PointField(bool tagged) : tagged_(tagged) {}

 private:
  bool tagged_;
};

TEST(CustomField, OfAPlugInIsLaidOutAsItsTagSaysAndNeedsOne) {
  const test::TemporaryFolder folder;
  const auto write = [&](bool tagged) {
    const std::vector<FieldPlan> plans = {
        {"a", [=] { return std::make_unique<PointField>(tagged); }},
        {"b", [] { return std::make_unique<IntField>(); }}};
    (void)write_dataset(folder / "x.beton", plans, 3,
                        [](std::uint64_t i) {
                          const auto number = static_cast<std::int64_t>(i);
                          return Sample{"x", {-number, 10 * number}};
                        },
                        {});
  };
  EXPECT_THAT([&] { write(false); }, ThrowsMessage<ConfigError>(Names("'a'")));
  write(true);
  const BetonReader reader(folder / "x.beton");
  EXPECT_EQ(reader.fields()[1].offset, 16U);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(load<std::int64_t>(reader.metadata(i, 0).data()), -static_cast<std::int64_t>(i));
    EXPECT_EQ(load<std::uint32_t>(reader.metadata(i, 0).data() + 8), i);
    EXPECT_EQ(reader.integer(i, 1), static_cast<std::int64_t>(10 * i));
  }
}

/// Writes a file with a single field, a custom field. Its arguments contain `mark` at kSumsFlagAt,
/// where files with checksums have their mark.
void write_marked(const std::filesystem::path& path, std::uint64_t mark, bool checksums) {
  std::vector<std::byte> arguments;
  put_tag({.kind = FieldTag::Kind::custom, .layout = {12, 4, {}}}, arguments);
  store(arguments.data() + kSumsFlagAt, mark);
  BetonWriter writer(path, {{"point", FieldType::custom, arguments}}, 1, {.checksums = checksums});
  EncodedValue value;
  value.metadata.resize(12);
  writer.add(std::span(&value, 1));
  writer.finish();
}

TEST(CustomField, AsTheFirstOfAFileWithChecksumsIsWrittenAgainWithAndWithout) {
  const test::TemporaryFolder folder;
  write_marked(folder / "a.beton", 0, true);
  const BetonReader first(folder / "a.beton");
  ASSERT_TRUE(first.has_embedded_sums());
  const auto mark = load<std::uint64_t>(first.fields()[0].arguments.data() + kSumsFlagAt);
  ASSERT_EQ(mark, kSumsFlag);
  for (const bool checksums : {true, false}) {
    write_marked(folder / "b.beton", mark, checksums);
    const BetonReader again(folder / "b.beton");
    EXPECT_EQ(again.has_embedded_sums(), checksums);
    EXPECT_EQ(load<std::uint64_t>(again.fields()[0].arguments.data() + kSumsFlagAt),
              checksums ? kSumsFlag : 0);
  }
  EXPECT_THAT([&] { write_marked(folder / "c.beton", 7, true); },
              ThrowsMessage<ConfigError>(Names("'point'", 760, 767)));
  write_marked(folder / "c.beton", 7, false);
  EXPECT_TRUE(BetonReader(folder / "c.beton").sums().empty());
}

TEST(FieldLayout, IsReadFromATextOrRefused) {
  EXPECT_EQ(parse_field_layout("24:8", "x"), (FieldLayout{24, 8, {}}));
  EXPECT_EQ(parse_field_layout("10:1:2", "x"), (FieldLayout{10, 1, 2}));
  for (const char* bad : {"", "8", "8:3", "8:32", "0:1", "8:8:1", "4:4:0", "a:8", "8:8:0:0",
                          "8:", "-8:8", "65537:1", "99999999999999999999:1"}) {
    EXPECT_THAT([&] { (void)parse_field_layout(bad, "--field x"); },
                ThrowsMessage<ConfigError>(
                    Names("--field x", "BYTES:ALIGNMENT", "'" + std::string(bad) + "'")))
        << bad;
  }
}

TEST_F(CustomFields, AnEmptyValueKeepsANullPointer) {
  const std::vector<FieldPlan> plans = {
      {"x", [] {
         return std::make_unique<CustomField>(FieldLayout{16, 8, 0}, std::vector<std::byte>());
       }}};
  const auto value = [](std::uint64_t i) {
    CustomInput input{std::vector<std::byte>(16), {}};
    store(input.metadata.data() + 8, i);
    if (i == 1) input.blob.assign(3, std::byte{7});
    return Sample{"x", {std::move(input)}};
  };
  (void)write_dataset(folder_ / "none.beton", plans, 3, value, {});
  const BetonReader ours(folder_ / "none.beton");
  for (std::uint64_t i = 0; i < 3; ++i) {
    const bool there = i == 1;
    EXPECT_EQ(load<std::uint64_t>(ours.metadata(i, 0).data()) != 0, there);
    EXPECT_THAT(ours.blob(i, 0), SizeIs(there ? 3 : 0));
    EXPECT_NO_THROW(ours.check_value(i, 0, ours.blob(i, 0)));
  }
}

TEST_F(CustomFields, OfPrecastFilesHaveTheStoredLayout) {
  write_again(*open_beton(path_, layouts_with_pointer_), folder_ / "ours.beton");
  EXPECT_EQ(BetonReader(folder_ / "ours.beton", BlobAccess::mapped, layouts_with_pointer_).size(),
            5U);
  EXPECT_THAT([&] { BetonReader(folder_ / "ours.beton", BlobAccess::mapped, layouts_); },
              ThrowsMessage<ConfigError>(Names("10:1:0")));
}

}  // namespace
}  // namespace precast::data
