#include "data/sources/beton.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/beton/reader.h"
#include "data/jobs/write_dataset.h"
#include "data/sources/register.h"
#include "data/write/register.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/part_spec.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;
using testing::ThrowsMessage;

/// A text for each value of a file: sample, field, type and the value itself.
std::vector<std::string> contents(const BetonReader& reader) {
  std::vector<std::string> all;
  for (std::uint64_t i = 0; i < reader.size(); ++i) {
    for (std::size_t f = 0; f < reader.fields().size(); ++f) {
      const FieldInfo& field = reader.fields()[f];
      std::string value =
          fmt::format("{} {} {} {}: ", i, field.name, field.dtype, field.shape.size());
      if (field.type == FieldType::integer) {
        value += std::to_string(reader.integer(i, f));
      } else if (field.type == FieldType::floating) {
        value += fmt::format("{}", reader.floating(i, f));
      } else {
        const std::span<const std::byte> blob = reader.blob(i, f);
        value.append(reinterpret_cast<const char*>(blob.data()), blob.size());
      }
      all.push_back(std::move(value));
    }
  }
  return all;
}

TEST(BetonSource, DamagedValuesAreNotReturned) {
  const test::TemporaryFolder folder;
  for (const char* name : {"allfields_w1", "img_jpg_w3"}) {
    const std::vector<std::byte> golden = test::golden_beton(name);
    const std::filesystem::path path = folder / fmt::format("{}.beton", name);
    test::write_bytes(path, golden);
    write_sums_sidecar(BetonReader(path));
    const BetonReader reader(golden, "golden");
    for (std::size_t f = 0; f < reader.fields().size(); ++f) {
      if (!reader.fields()[f].has_pointer() || reader.blob_bytes(1, f) == 0) continue;
      std::vector<std::byte> bytes = golden;
      bytes[reader.blob_offset(1, f) + reader.blob_bytes(1, f) / 2] ^= std::byte{1};
      test::write_bytes(path, bytes);
      const auto source = open_source(path);
      EXPECT_NO_THROW((void)source->sample(0));
      EXPECT_THAT([&] { (void)source->sample(1); },
                  ThrowsMessage<DataError>(
                      Names(path, "sample 1", fmt::format("'{}'", reader.fields()[f].name))));
    }
  }
}

TEST(BetonSource, ReadsAnOpenFileAndNotItsPath) {
  const test::TemporaryFolder folder;
  test::write_bytes(folder / "a.beton", test::golden_beton("scalars_only"));
  std::unique_ptr<Source> source;
  {
    const BetonReader reader(folder / "a.beton");
    std::filesystem::remove(folder / "a.beton");
    source = open_beton(reader);
  }
  const std::vector<std::byte> golden = test::golden_beton("scalars_only");
  const BetonReader expected(golden, "golden");
  ASSERT_EQ(source->size(), expected.size());
  const std::size_t field = expected.first_field(FieldType::integer);
  EXPECT_EQ(std::get<std::int64_t>(source->sample(1).values[field]), expected.integer(1, field));
}

TEST(BetonSource, AFileOfFfcvIsWrittenAgainWithAllItsFields) {
  FieldRegistry registry("field");
  register_fields(registry);
  for (const char* name : {"allfields_w1", "allfields_w3_empty", "img_jpg_w3", "img_smart_w3",
                           "scalars_only", "wds_w2"}) {
    const test::TemporaryFolder folder;
    test::write_bytes(folder / "golden.beton", test::golden_beton(name));
    const auto source = open_source(folder / "golden.beton");
    std::vector<FieldPlan> plans;
    for (const SourceField& field : source->fields()) {
      plans.push_back({field.name, [&registry, field] {
                         std::string options = "{}";
                         if (field.type == "image" && field.name == "image")
                           options = "{mode: smart, smart_threshold: 10000, passthrough: true}";
                         if (field.type == "image" && field.name != "image")
                           options = "{mode: raw}";
                         return registry.make(test::part_spec(field.type, options),
                                              {.array = field.array});
                       }});
    }
    WriteOptions options;
    options.layout.page_bytes = kMinPageBytes;
    (void)write_dataset(
        folder / "ours.beton", plans, source->size(),
        [&](std::uint64_t i) { return source->sample(i); }, options);
    EXPECT_TRUE(contents(BetonReader(folder / "ours.beton")) ==
                contents(BetonReader(folder / "golden.beton")))
        << name;
  }
}

}  // namespace
}  // namespace precast::data
