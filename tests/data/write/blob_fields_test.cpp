#include "data/write/blob_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/beton/reader.h"
#include "data/jobs/write_dataset.h"
#include "data/write/number_fields.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::golden_beton;
using test::Names;
using testing::ThrowsMessage;

std::vector<std::byte> bytes_of(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}
std::vector<std::byte> bytes_of(const std::string& text) {
  return bytes_of(std::as_bytes(std::span(text.data(), text.size())));
}

FieldPlan plan_of(const FieldInfo& field) {
  switch (field.type) {
    case FieldType::integer:
      return {field.name, [] { return std::make_unique<IntField>(); }};
    case FieldType::floating:
      return {field.name, [] { return std::make_unique<FloatField>(); }};
    case FieldType::bytes:
      return {field.name, [] { return std::make_unique<BytesField>(); }};
    case FieldType::json:
      return {field.name, [] { return std::make_unique<JsonField>(); }};
    default:
      return {
          field.name, [field] {
            return std::make_unique<ArrayField>(field.type, ArrayFormat{field.dtype, field.shape});
          }};
  }
}

Value value_of(const BetonReader& reader, std::uint64_t sample, std::size_t index) {
  const FieldInfo& field = reader.fields()[index];
  if (field.type == FieldType::integer) return reader.integer(sample, index);
  if (field.type == FieldType::floating) return reader.floating(sample, index);
  std::vector<std::byte> blob = bytes_of(reader.blob(sample, index));
  if (field.type == FieldType::bytes) return blob;
  if (field.type == FieldType::json)
    return std::string(reinterpret_cast<const char*>(blob.data()), blob.size() - 1);
  return ArrayInput{{field.dtype, field.shape}, std::move(blob)};
}

/// Reads a golden file and writes its values again.
std::vector<std::byte> write_again(const std::string& name, const test::TemporaryFolder& folder) {
  test::write_bytes(folder / "golden.beton", golden_beton(name));
  const BetonReader reader(folder / "golden.beton");
  std::vector<FieldPlan> plans;
  for (const FieldInfo& field : reader.fields()) plans.push_back(plan_of(field));
  WriteOptions options;
  options.layout = {.page_bytes = reader.header().page_bytes, .checksums = false};
  options.workers = 2;
  (void)write_dataset(
      folder / "ours.beton", plans, reader.size(),
      [&](std::uint64_t sample) {
        Sample values{"golden", {}};
        for (std::size_t i = 0; i < plans.size(); ++i)
          values.values.push_back(value_of(reader, sample, i));
        return values;
      },
      options);
  return test::read_bytes(folder / "ours.beton");
}

TEST(BlobFields, EveryKindGivesFfcvsFileByteForByte) {
  const test::TemporaryFolder folder;
  EXPECT_TRUE(write_again("allfields_w1", folder) == golden_beton("allfields_w1"));
}

TEST(BlobFields, EmptyBytesAreReadAsEmptyAndHaveDistinctOffsets) {
  for (const char* name : {"allfields_w3_empty", "bytes_first_empty"}) {
    const test::TemporaryFolder folder;
    (void)write_again(name, folder);
    const BetonReader golden(folder / "golden.beton");
    const BetonReader ours(folder / "ours.beton");
    std::set<std::uint64_t> offsets;
    int empty = 0;
    for (std::uint64_t sample = 0; sample < golden.size(); ++sample) {
      for (std::size_t i = 0; i < golden.fields().size(); ++i) {
        if (golden.fields()[i].type == FieldType::integer ||
            golden.fields()[i].type == FieldType::floating)
          continue;
        EXPECT_EQ(bytes_of(ours.blob(sample, i)), bytes_of(golden.blob(sample, i)))
            << name << ' ' << sample << ' ' << golden.fields()[i].name;
        EXPECT_TRUE(offsets.insert(ours.blob_offset(sample, i)).second);
        empty += ours.blob_bytes(sample, i) == 0 ? 1 : 0;
      }
    }
    EXPECT_GT(empty, 0) << name;
  }
}

TEST(BlobFields, BytesThatFillAPageAndEmptyOnesGetPagesOfTheirOwn) {
  const test::TemporaryFolder folder;
  const std::vector<FieldPlan> plans = {{"x", [] { return std::make_unique<BytesField>(); }}};
  const std::vector<std::size_t> sizes = {kMinPageBytes, 0, kMinPageBytes - 1, 0, 0};
  WriteOptions options;
  options.layout.page_bytes = kMinPageBytes;
  (void)write_dataset(
      folder / "x.beton", plans, sizes.size(),
      [&](std::uint64_t i) {
        return Sample{"x", {std::vector<std::byte>(sizes[i], static_cast<std::byte>(i + 1))}};
      },
      options);
  const BetonReader reader(folder / "x.beton");
  for (std::uint64_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(bytes_of(reader.blob(i, 0)),
              std::vector<std::byte>(sizes[i], static_cast<std::byte>(i + 1)));
  }
}

std::string encoded(Field& field, const Value& value) {
  EncodedValue out;
  field.encode(value, 0, out);
  return {reinterpret_cast<const char*>(out.blob.data()), out.blob.size()};
}

TEST(BytesField, TakesTextsAndRefusesNumbers) {
  BytesField field;
  EXPECT_EQ(encoded(field, std::string("a\0b", 3)), std::string("a\0b", 3));
  EXPECT_EQ(encoded(field, std::string()), "");
  EXPECT_THAT([&] { encoded(field, std::int64_t{3}); },
              ThrowsMessage<DataError>(Names("bytes field")));
}

TEST(JsonField, StoresDocumentsAsTheyAreWithAZeroByte) {
  JsonField field;
  EXPECT_EQ(encoded(field, std::string(R"({"a" :  [1, "ü"]})")),
            std::string(R"({"a" :  [1, "ü"]})") + '\0');
  EXPECT_EQ(encoded(field, bytes_of(std::string("null"))), std::string("null") + '\0');
  EXPECT_EQ(encoded(field, std::int64_t{-7}), std::string("-7") + '\0');
  EXPECT_EQ(encoded(field, 0.5), std::string("0.5") + '\0');
  for (const char* bad : {"", "{", "a", "{} {}", "nul"}) {
    EXPECT_THAT([&] { encoded(field, std::string(bad)); },
                ThrowsMessage<DataError>(Names("json field", std::string(bad).size())))
        << bad;
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const auto& [bad, fact] : {std::pair{std::numeric_limits<double>::quiet_NaN(), "nan"},
                                  std::pair{kInfinity, "inf"}, std::pair{-kInfinity, "-inf"}}) {
    const auto encode = [&, number = bad] { encoded(field, number); };
    EXPECT_THAT(encode, ThrowsMessage<DataError>(Names("json field", fact)));
  }
}

TEST(ArrayField, RefusesOtherShapesAndTypesAndFormatsAFileCannotState) {
  ArrayField field(FieldType::ndarray, {"<f4", {2, 3}});
  EXPECT_EQ(encoded(field, ArrayInput{{"<f4", {2, 3}}, bytes_of(std::string(24, 'x'))}),
            std::string(24, 'x'));
  EXPECT_THAT(
      [&] {
        encoded(field, ArrayInput{{"<f4", {3, 2}}, bytes_of(std::string(24, 'x'))});
      },
      ThrowsMessage<DataError>(Names("[2, 3] of <f4", "[3, 2] of <f4")));
  EXPECT_THAT([&] { encoded(field, 1.0); }, ThrowsMessage<DataError>(Names("[2, 3] of <f4")));
  const std::vector<std::pair<ArrayFormat, std::vector<std::string>>> bad = {
      {{"float32", {2}}, {"'float32'"}},
      {{"<f4", {}}, {"32", "0"}},
      {{"<f4", std::vector<std::uint64_t>(33, 1)}, {"32", "33"}},
      {{"<f4", {2, 0}}, {"[2, 0] of <f4"}},
      {{"<f8", {UINT64_MAX / 2, 16}}, {"[9223372036854775807, 16] of <f8"}}};
  for (const auto& [format, facts] : bad) {
    const ArrayFormat& wanted = format;
    EXPECT_THAT([&wanted] { ArrayField(FieldType::tensor, wanted); },
                ThrowsMessage<ConfigError>(test::NamesMatcher(facts)));
  }
}

TEST(DtypeBytes, KnowsAllPlainTypesOfNumpy) {
  const std::vector<std::pair<const char*, std::uint64_t>> cases = {
      {"<f4", 4},       {"|b1", 1},     {">i8", 8},      {"<c16", 16}, {"|S5", 5},   {"|V7", 7},
      {"<U8", 32},      {"<M8[ns]", 8}, {"<m8[25s]", 8}, {"<M8", 0},   {"<M8[]", 0}, {"<M4[ns]", 0},
      {"<M8[n\"s]", 0}, {"<x4", 0},     {"f4", 0},       {"|O", 0},    {"<U", 0}};
  for (const auto& [dtype, bytes] : cases) EXPECT_EQ(dtype_bytes(dtype), bytes) << dtype;
}

}  // namespace
}  // namespace precast::data
