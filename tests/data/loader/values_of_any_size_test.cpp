// Tests batches of strings, JSON, arrays and images of any size.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>

#include "data/beton/reader.h"
#include "data/jobs/write_dataset.h"
#include "data/loader/loader.h"
#include "data/loader/memory_plan.h"
#include "data/loader/outputs.h"
#include "data/write/register.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/transforms/parsed_pipeline.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;
using test::parsed_pipeline;
using testing::ElementsAre;
using testing::ThrowsMessage;

constexpr std::uint64_t kSamples = 7;

template <typename T>
ArrayInput array(const char* dtype, std::vector<std::uint64_t> shape,
                 const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {{dtype, std::move(shape)}, {bytes.begin(), bytes.end()}};
}

/// A string of 3 i letters, which is empty for sample 0.
std::string text_of(std::uint64_t i) {
  return std::string(i * 3, static_cast<char>('a' + i));
}
/// An array [i, 2] with the values 10 i, 10 i + 1, ...
std::vector<float> points_of(std::uint64_t i) {
  std::vector<float> values;
  for (std::uint64_t k = 0; k < 2 * i; ++k) values.push_back(static_cast<float>(10 * i + k));
  return values;
}
/// An image [1 + i % 2, 3, 2]; value k is 100 i + k.
std::vector<std::uint16_t> pixels_of(std::uint64_t i) {
  std::vector<std::uint16_t> values;
  for (std::uint64_t k = 0; k < 6 * (1 + i % 2); ++k)
    values.push_back(static_cast<std::uint16_t>(100 * i + k));
  return values;
}
/// The float16 values 1 and 2 to the power of i.
std::vector<std::uint16_t> halves_of(std::uint64_t i) {
  return {0x3c00, static_cast<std::uint16_t>(0x3c00 + (i << 10))};
}

class AnySize : public ::testing::Test {
 protected:
  AnySize() {
    FieldRegistry registry("field");
    register_fields(registry);
    const Sample first = sample(0);
    std::vector<FieldPlan> plans;
    for (const auto& [name, kind] : kinds_) {
      const std::size_t index = plans.size();
      plans.push_back({name, [&registry, &first, index, kind = kind] {
                         FieldInputs options;
                         options.array = {"<f2", {2}};
                         options.first = [&first, index] {
                           return FirstValue{first.name, first.values[index]};
                         };
                         return registry.make({kind}, options);
                       }});
    }
    (void)write_dataset(path_, plans, kSamples, sample, {});
    reader_.emplace(path_);
  }

  static Sample sample(std::uint64_t i) {
    return {
        "x",
        {text_of(i), fmt::format("{{\"n\": {}}}", i * i * i), array("<f4", {i, 2}, points_of(i)),
         array("<u2", {1 + i % 2, 3, 2}, pixels_of(i)), array("<f2", {2}, halves_of(i)),
         static_cast<std::int64_t>(i), static_cast<double>(i) / 2}};
  }

  /// All batches of a pass in file order.
  std::vector<HostBatch> pass(const Pipeline& pipeline, std::int64_t batch_size, int workers = 2,
                              BlobAccess access = BlobAccess::mapped) {
    reader_.emplace(path_, access);
    LoaderOptions options;
    options.batch_size = batch_size;
    options.workers = workers;
    Loader loader(*reader_, pipeline, options);
    loader.begin_epoch({.image_size_px = 32});
    std::vector<HostBatch> batches;
    while (auto batch = loader.next()) batches.push_back(std::move(*batch));
    return batches;
  }

  static const HostTensor& tensor(const HostBatch& batch, const std::string& name) {
    for (const HostTensor& field : batch.fields)
      if (field.name == name) return field;
    throw std::runtime_error("no tensor " + name);
  }

  static inline const std::vector<std::pair<std::string, std::string>> kinds_ = {
      {"text", "bytes"},   {"meta", "json"}, {"points", "ragged"}, {"depth", "pixels"},
      {"half", "ndarray"}, {"label", "int"}, {"target", "float"}};
  test::TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "x.beton";
  std::optional<BetonReader> reader_;
};

TEST_F(AnySize, TextsArePaddedToTheLongestOfTheirBatchWithTrueLengths) {
  for (const int workers : {1, 3}) {
    const auto batches = pass(parsed_pipeline("{text: }"), 3, workers);
    ASSERT_EQ(batches.size(), 3U);
    for (const HostBatch& batch : batches) {
      const HostTensor& text = tensor(batch, "text");
      const HostTensor& lengths = tensor(batch, "text.lengths");
      const auto count = static_cast<std::int64_t>(batch.sample_ids.size());
      const std::size_t longest = text_of(batch.sample_ids.back()).size();
      EXPECT_THAT(text.shape, ElementsAre(count, longest));
      EXPECT_EQ(text.type, ElementType::u8);
      EXPECT_THAT(lengths.shape, ElementsAre(count));
      const std::string letters(reinterpret_cast<const char*>(text.data), text.bytes());
      for (std::size_t row = 0; row < batch.sample_ids.size(); ++row) {
        const std::string expected = text_of(batch.sample_ids[row]);
        EXPECT_EQ(lengths.values<std::int64_t>()[row], expected.size());
        EXPECT_EQ(letters.substr(row * longest, longest),
                  expected + std::string(longest - expected.size(), '\0'));
      }
    }
  }
}

TEST_F(AnySize, JsonComesWithoutItsZeroAndPadToFixesTheShape) {
  const auto batches = pass(parsed_pipeline("{meta: {pad_to: [20]}, text: {pad_to: [18]}}"), 7);
  const HostTensor& meta = tensor(batches[0], "meta");
  EXPECT_THAT(meta.shape, ElementsAre(7, 20));
  EXPECT_THAT(tensor(batches[0], "text").shape, ElementsAre(7, 18));
  const std::string letters(reinterpret_cast<const char*>(meta.data), meta.bytes());
  EXPECT_EQ(letters.substr(60, 20), std::string("{\"n\": 27}") + std::string(11, '\0'));
  EXPECT_EQ(tensor(batches[0], "meta.lengths").values<std::int64_t>()[3], 9);
  EXPECT_THAT([&] { (void)pass(parsed_pipeline("{text: {pad_to: [17]}}"), 7); },
              ThrowsMessage<ConfigError>(Names("sample 6", "'text'", 17, "pad_to", 18)));
}

TEST_F(AnySize, RaggedArraysComeFlatOrPaddedWithTheirExtents) {
  const auto flat = pass(parsed_pipeline("{points: }"), 4);
  const HostTensor& values = tensor(flat[1], "points");
  EXPECT_EQ(values.type, ElementType::f32);
  EXPECT_THAT(values.shape, ElementsAre(3, 12));
  EXPECT_THAT(tensor(flat[1], "points.extents").shape, ElementsAre(3, 2));
  EXPECT_THAT(tensor(flat[1], "points.extents").values<std::int64_t>(),
              ElementsAre(4, 2, 5, 2, 6, 2));
  EXPECT_THAT(values.values<float>().subspan(12, 12),
              ElementsAre(50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 0, 0));

  const auto padded = pass(parsed_pipeline("{points: {pad_to: [7, 3]}}"), 7);
  const HostTensor& square = tensor(padded[0], "points");
  EXPECT_THAT(square.shape, ElementsAre(7, 7, 3));
  EXPECT_THAT(square.values<float>().subspan(2 * 21, 21),
              ElementsAre(20, 21, 0, 22, 23, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(
      [&] { (void)pass(parsed_pipeline("{points: {pad_to: [5, 2]}}"), 7); },
      ThrowsMessage<ConfigError>(Names("sample 6", "'points'", "pad_to", "[5, 2]", "[6, 2]")));
}

TEST_F(AnySize, BatchesOfEmptyValuesAloneHaveNoColumns) {
  const auto batches = pass(parsed_pipeline("{text: , points: }"), 1);
  EXPECT_THAT(tensor(batches[0], "text").shape, ElementsAre(1, 0));
  EXPECT_THAT(tensor(batches[0], "points").shape, ElementsAre(1, 0));
  EXPECT_THAT(tensor(batches[0], "points.extents").values<std::int64_t>(), ElementsAre(0, 2));
}

TEST_F(AnySize, PixelsAreOfOneSizeOrPadded) {
  EXPECT_THAT(
      [&] { (void)pass(parsed_pipeline("{depth: }"), 7); },
      ThrowsMessage<ConfigError>(Names("sample 1", "'depth'", "[1, 3, 2]", "[2, 3, 2]", "pad_to")));
  for (const BlobAccess access : {BlobAccess::mapped, BlobAccess::on_disk}) {
    const auto batches = pass(parsed_pipeline("{depth: {pad_to: [2, 4]}}"), 7, 2, access);
    const HostTensor& depth = tensor(batches[0], "depth");
    EXPECT_EQ(depth.type, ElementType::u16);
    EXPECT_THAT(depth.shape, ElementsAre(7, 2, 4, 2));
    EXPECT_THAT(
        depth.values<std::uint16_t>().subspan(16, 16),
        ElementsAre(100, 101, 102, 103, 104, 105, 0, 0, 106, 107, 108, 109, 110, 111, 0, 0));
    EXPECT_THAT(tensor(batches[0], "depth.extents").values<std::int64_t>().first(4),
                ElementsAre(1, 3, 2, 3));
  }
}

TEST_F(AnySize, ADamagedFirstImageIsNamed) {
  std::vector<std::byte> bytes = test::read_bytes(path_);
  bytes[reader_->blob_offset(0, 3)] ^= std::byte{64};
  test::write_bytes(path_, bytes);
  EXPECT_THAT([&] { (void)pass(parsed_pipeline("{depth: }"), 7); },
              ThrowsMessage<DataError>(Names(path_, "sample 0", "'depth'")));
}

TEST_F(AnySize, AFileWithoutImagesHasAllFieldsAsOutputs) {
  // Only `depth` cannot be loaded: its images differ in size, and there is no `pad_to`.
  EXPECT_THAT([&] { (void)pass({}, 7); }, ThrowsMessage<ConfigError>(Names("'depth'")));
  std::vector<std::string> names;
  for (const Output& output : resolve_outputs(*reader_, {}, false)) names.push_back(output.name);
  EXPECT_THAT(
      names, ElementsAre("text", "text.lengths", "meta", "meta.lengths", "points", "points.extents",
                         "depth", "depth.extents", "half", "label", "target"));
}

TEST_F(AnySize, Float16ValuesStayFloat16) {
  const auto batches = pass(parsed_pipeline("{half: , label: , target: }"), 7);
  const HostTensor& half = tensor(batches[0], "half");
  EXPECT_EQ(half.type, ElementType::f16);
  EXPECT_THAT(half.shape, ElementsAre(7, 2));
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    EXPECT_EQ(half.values<std::uint16_t>()[2 * i + 1], halves_of(i)[1]);
    EXPECT_EQ(tensor(batches[0], "label").values<std::int64_t>()[i], static_cast<std::int64_t>(i));
    EXPECT_EQ(tensor(batches[0], "target").values<double>()[i], static_cast<double>(i) / 2);
  }
}

TEST_F(AnySize, TheMemoryPlanIncludesUnboundedValues) {
  LoaderOptions options;
  options.batch_size = 4;
  options.batches_ahead = 2;
  const MemoryPlan plan = plan_memory(*reader_, parsed_pipeline("{text: , label: }"), options, 32);
  EXPECT_EQ(plan.unbounded, 18U * 4 * 3);
  EXPECT_THAT(plan.text(), Names("pad_to"));
  EXPECT_EQ(plan_memory(*reader_, parsed_pipeline("{text: {pad_to: [18]}}"), options, 32).unbounded,
            0U);
}

TEST_F(AnySize, ImpossiblePaddingsAndConversionsAreRefused) {
  const std::map<std::string, std::vector<std::string>> cases = {
      {"{label: {pad_to: [3]}}", {"pipeline.train.label", "pad_to"}},
      {"{text: {pad_to: [3, 3]}}", {"pipeline.train.text", "pad_to", "1", "2"}},
      {"{points: {pad_to: [3]}}", {"pipeline.train.points", "pad_to", "2", "1"}},
      {"{depth: {pad_to: [3, 3, 3]}}", {"pipeline.train.depth", "pad_to", "2", "3"}},
      {"{text: {pad_to: [2.5]}}", {"text.pad_to", "1", "2.5"}},
      {"{text: {pad_to: [0]}}", {"text.pad_to", "1", "0"}},
      {"{text: {transforms: [convert: {type: f32}]}}", {"'text'", "bytes"}},
      {"{points: {transforms: [convert: {type: f16}]}}", {"'points'", "bytes ragged <f4"}}};
  for (const auto& [pipeline, facts] : cases) {
    const std::string& text = pipeline;
    EXPECT_THAT([&] { (void)pass(parsed_pipeline(text), 2); },
                ThrowsMessage<ConfigError>(test::NamesMatcher(facts)))
        << text;
  }
}

TEST_F(AnySize, AnIntactValueThatDoesNotFitIsNeverReplaced) {
  BetonReader reader(path_);
  LoaderOptions options;
  options.batch_size = 7;
  options.on_corrupt = OnCorrupt::replace;
  for (const char* pipeline :
       {"{text: {pad_to: [17]}}", "{points: {pad_to: [5, 2]}}", "{depth: }"}) {
    Loader loader(reader, parsed_pipeline(pipeline), options);
    loader.begin_epoch({.image_size_px = 32});
    EXPECT_THROW((void)loader.next(), ConfigError) << pipeline;
    EXPECT_TRUE(loader.statistics().replaced.empty());
  }
}

TEST_F(AnySize, BatchesLargerThanMemoryAreRefused) {
  const Pipeline pipeline = parsed_pipeline("{points: {pad_to: [2147483647, 2147483647]}}");
  EXPECT_THAT([&] { (void)pass(pipeline, 1000); },
              ThrowsMessage<ConfigError>(Names("points", "pad_to")));
}

TEST_F(AnySize, ValuesOfFfcvFilesAreReadAsWritten) {
  test::write_bytes(path_, test::golden_beton("allfields_w3_empty"));
  const BetonReader golden(path_);
  std::string names;
  for (const FieldInfo& field : golden.fields())
    if (field.type == FieldType::bytes || field.type == FieldType::json)
      names += fmt::format("{}{}: ", names.empty() ? "" : ", ", field.name);
  const auto batches = pass(parsed_pipeline(fmt::format("{{{}}}", names)), 5);
  std::size_t empty = 0;
  for (const HostBatch& batch : batches) {
    for (std::size_t t = 0; t < batch.fields.size(); t += 2) {
      const std::size_t field = golden.field(batch.fields[t].name);
      const bool json = golden.fields()[field].type == FieldType::json;
      const auto width = static_cast<std::size_t>(batch.fields[t].shape[1]);
      for (std::size_t row = 0; row < batch.sample_ids.size(); ++row) {
        auto expected = golden.blob(batch.sample_ids[row], field);
        if (json) expected = expected.first(expected.size() - 1);
        empty += expected.empty() ? 1 : 0;
        const auto length =
            static_cast<std::size_t>(batch.fields[t + 1].values<std::int64_t>()[row]);
        ASSERT_EQ(length, expected.size());
        const std::span<const std::byte> found(batch.fields[t].data + row * width, length);
        EXPECT_TRUE(std::ranges::equal(found, expected));
      }
    }
  }
  EXPECT_GT(empty, 0U);
}

TEST_F(AnySize, NumbersThatABatchCannotHoldAreErrorsAndDoNotWrap) {
  FieldRegistry registry("field");
  register_fields(registry);
  const auto plan = [&](const char* name, const char* kind) {
    return FieldPlan{name, [&registry, kind] { return registry.make({kind}, {}); }};
  };
  static constexpr std::int64_t kOdd = (std::int64_t{1} << 53) + 1;
  (void)write_dataset(path_, {plan("i", "int"), plan("odd", "int"), plan("f", "float")}, 1,
                      [](std::uint64_t) {
                        return Sample{"x", {std::int64_t{1} << 40, kOdd, 1e300}};
                      },
                      {});
  for (const auto& [steps, field, bits] :
       {std::tuple{"{i: {transforms: [convert: {type: i32}]}}", "'i'", 32},
        std::tuple{"{f: {transforms: [convert: {type: i64}]}}", "'f'", 64},
        std::tuple{"{f: {transforms: [convert: {type: i32}]}}", "'f'", 32},
        std::tuple{"{odd: {transforms: [convert: {type: f32}]}}", "'odd'", 32},
        std::tuple{"{odd: {transforms: [convert: {type: f64}]}}", "'odd'", 64},
        std::tuple{"{f: {transforms: [convert: {type: f32}]}}", "'f'", 32}}) {
    const Pipeline pipeline = parsed_pipeline(steps);
    EXPECT_THAT([&] { (void)pass(pipeline, 1); },
                ThrowsMessage<ConfigError>(Names("sample 0", field, bits)));
  }
  EXPECT_EQ(pass(parsed_pipeline("{i: , odd: , f: }"), 1).size(), 1U);
  const auto fitting = pass(parsed_pipeline("{i: {transforms: [convert: {type: f32}]}}"), 1);
  EXPECT_EQ(fitting.at(0).fields[0].values<float>()[0], 0x1p40F);
}

TEST_F(AnySize, SamplesWhoseNumbersDoNotFitAreNeverReplaced) {
  constexpr std::int64_t kLarge = 5'000'000'000;  // above the range of i32
  FieldRegistry registry("field");
  register_fields(registry);
  const auto plan = [&](const char* name, const char* kind) {
    return FieldPlan{name, [&registry, kind] { return registry.make({kind}, {}); }};
  };
  (void)write_dataset(
      path_, {plan("i", "int"), plan("f", "float")}, 3,
      [](std::uint64_t i) {
        return Sample{"x", {i == 1 ? kLarge : 0, i == 1 ? static_cast<double>(kLarge) : 0.0}};
      },
      {});
  BetonReader reader(path_);
  LoaderOptions options;
  options.on_corrupt = OnCorrupt::replace;
  for (const char* field : {"i", "f"}) {
    Loader loader(
        reader,
        parsed_pipeline(fmt::format("{{{}: {{transforms: [convert: {{type: i32}}]}}}}", field)),
        options);
    loader.begin_epoch({.image_size_px = 32});
    EXPECT_THAT(
        [&] { (void)loader.next(); },
        ThrowsMessage<ConfigError>(Names(path_, "sample 1", fmt::format("'{}'", field), 32)));
    EXPECT_TRUE(loader.statistics().replaced.empty());
  }
}

TEST_F(AnySize, TheLargestFloatIsTheLimitAfterRounding) {
  FieldRegistry registry("field");
  register_fields(registry);
  const auto write = [&](double value) {
    (void)write_dataset(path_, {{"f", [&] { return registry.make({"float"}, {}); }}}, 1,
                        [&](std::uint64_t) {
                          return Sample{"x", {value}};
                        },
                        {});
  };
  const Pipeline pipeline = parsed_pipeline("{f: {transforms: [convert: {type: f32}]}}");
  write(std::nextafter(double{FLT_MAX}, HUGE_VAL));
  EXPECT_EQ(pass(pipeline, 1).at(0).fields[0].values<float>()[0], FLT_MAX);
  // Halfway between FLT_MAX and the next power of two, to which it would be rounded.
  write(0x1.ffffffp127);
  EXPECT_THROW((void)pass(pipeline, 1), ConfigError);
}

}  // namespace
}  // namespace precast::data
