#include "data/write/writer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "data/beton/reader.h"
#include "data/decode/jpeg_sidecar.h"
#include "data/jobs/write_dataset.h"
#include "data/write/image_field.h"
#include "data/write/number_fields.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/failing_file_ops.h"
#include "tests/support/few_threads.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::golden_beton;
using test::Names;
using testing::Throws;
using testing::ThrowsMessage;

/// Writes the samples of a golden file again, with unchanged metadata and blobs.
std::vector<std::byte> lay_out_again(const std::string& name) {
  const test::TemporaryFolder folder;
  test::write_bytes(folder / "golden.beton", golden_beton(name));
  const BetonReader reader(folder / "golden.beton");
  std::vector<FieldColumn> columns;
  for (const FieldInfo& field : reader.fields()) columns.push_back({field.name, field.type});
  BetonWriter writer(folder / "ours.beton", columns, reader.size(),
                     {.page_bytes = reader.header().page_bytes, .checksums = false});
  for (std::uint64_t sample = 0; sample < reader.size(); ++sample) {
    std::vector<EncodedValue> values(columns.size());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      EncodedValue& value = values[i];
      value.metadata.resize(columns[i].type == FieldType::image ? kImageMetadataBytes : 8);
      if (columns[i].type == FieldType::integer) {
        store(value.metadata.data(), reader.integer(sample, i));
      } else if (columns[i].type == FieldType::floating) {
        store(value.metadata.data(), reader.floating(sample, i));
      } else {
        const ImageRecord image = reader.image(sample, i);
        value.metadata[0] = static_cast<std::byte>(image.mode);
        store(value.metadata.data() + kImageWidthAt, static_cast<std::uint16_t>(image.width));
        store(value.metadata.data() + kImageHeightAt, static_cast<std::uint16_t>(image.height));
        value.blob.assign(image.bytes.begin(), image.bytes.end());
      }
    }
    writer.add(values);
  }
  writer.finish();
  return test::read_bytes(folder / "ours.beton");
}

TEST(BetonWriter, FilesOfOneWorkerAreThoseOfFfcvByteForByte) {
  for (const char* name : {"img_raw_w1", "img_prop_nette_w1", "scalars_only"}) {
    EXPECT_TRUE(lay_out_again(name) == golden_beton(name)) << name;
  }
}

TEST(WriteDataset, RawPixelsGiveFfcvsFileByteForByte) {
  const test::TemporaryFolder folder;
  test::write_bytes(folder / "golden.beton", golden_beton("img_raw_w1"));
  const BetonReader reader(folder / "golden.beton");
  const std::vector<FieldPlan> fields = {
      {"image",
       [] {
         return std::make_unique<ImageField>(
             ImageFieldOptions{.mode = ImageWriteMode::raw, .max_resolution_px = 64});
       }},
      {"label", [] { return std::make_unique<IntField>(); }}};
  const auto sample = [&](std::uint64_t i) {
    const ImageRecord record = reader.image(i, 0);
    Image image(record.height, record.width);
    std::memcpy(image.pixels.data(), record.bytes.data(), record.bytes.size());
    return Sample{"golden", {ImageInput{{}, image}, reader.integer(i, 1)}};
  };
  for (const int workers : {1, 3}) {
    WriteOptions options;
    options.layout = {.page_bytes = kMinPageBytes, .checksums = false};
    options.workers = workers;
    (void)write_dataset(folder / "ours.beton", fields, reader.size(), sample, options);
    EXPECT_TRUE(test::read_bytes(folder / "ours.beton") == golden_beton("img_raw_w1")) << workers;
  }
}

std::vector<EncodedValue> raw_image(std::size_t bytes) {
  EncodedValue value;
  value.metadata.resize(kImageMetadataBytes);
  value.blob.resize(bytes, std::byte{7});
  return {value};
}

TEST(BetonWriter, BeginsANewPageWhereASampleDoesNotFitAndZeroesTheTail) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.beton";
  BetonWriter writer(path, {{"image", FieldType::image}}, 4,
                     {.page_bytes = kMinPageBytes, .checksums = false});
  for (const std::size_t bytes :
       {kMinPageBytes - 10, std::uint64_t{10}, std::uint64_t{1}, kMinPageBytes}) {
    writer.add(raw_image(bytes));
  }
  writer.finish();
  const std::vector<std::byte> file = test::read_bytes(path);
  const std::uint64_t table = load<std::uint64_t>(file.data() + 16);
  ASSERT_EQ(table, 4 * kMinPageBytes);
  std::vector<std::uint64_t> pointers;
  for (std::size_t i = 0; i < 4; ++i) {
    pointers.push_back(load<std::uint64_t>(file.data() + table + i * kAllocationBytes + 8));
  }
  EXPECT_THAT(pointers, testing::ElementsAre(kMinPageBytes, 2 * kMinPageBytes - 10,
                                             2 * kMinPageBytes, 3 * kMinPageBytes));
  for (std::uint64_t at = 2 * kMinPageBytes + 1; at < 3 * kMinPageBytes; ++at) {
    ASSERT_EQ(file[at], std::byte{0}) << at;
  }
}

TEST(BetonWriter, WithChecksumsAFileIsNoLargerThanItsValuesNeed) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.beton";
  BetonWriter writer(path, {{"image", FieldType::image}}, 3);
  for (const std::size_t bytes : {100U, 200U, 300U}) {
    std::vector<EncodedValue> image = raw_image(bytes * 3);
    image[0].metadata[0] = std::byte{1};
    store(image[0].metadata.data() + kImageWidthAt, static_cast<std::uint16_t>(bytes));
    store(image[0].metadata.data() + kImageHeightAt, std::uint16_t{1});
    writer.add(image);
  }
  writer.finish();
  EXPECT_EQ(writer.pages(), 1U);
  const BetonReader reader(path);
  EXPECT_EQ(reader.file_bytes(), writer.file_bytes());
  EXPECT_LT(reader.file_bytes(), 4000U);
  EXPECT_EQ(reader.blob_offset(0, 0), kHeaderBytes + kFieldBytes + 3 * kImageMetadataBytes);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(reader.image(i, 0).bytes.size(), (i + 1) * 300);
    EXPECT_EQ(reader.image(i, 0).bytes.back(), std::byte{7});
    reader.check_value(i, 0, reader.blob(i, 0));
  }
}

TEST(BetonWriter, WithChecksumsNoValueCrossesAPageEither) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.beton";
  BetonWriter writer(path, {{"bytes", FieldType::bytes}}, 4, {.page_bytes = kMinPageBytes});
  const std::uint64_t sizes[] = {kMinPageBytes, 10, kMinPageBytes - 10, 5};
  for (const std::uint64_t size : sizes) {
    std::vector<EncodedValue> value = raw_image(size);
    value[0].metadata.assign(16, std::byte{0});
    store(value[0].metadata.data() + 8, size);
    writer.add(value);
  }
  writer.finish();
  // The first value does not fit into what remains of the page with the records.
  EXPECT_EQ(writer.pages(), 3U);
  const BetonReader reader(path);
  const std::uint64_t at[] = {kMinPageBytes, 2 * kMinPageBytes, 2 * kMinPageBytes + 10,
                              3 * kMinPageBytes};
  for (std::uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(reader.blob_offset(i, 0), at[i]);
    EXPECT_EQ(reader.blob_bytes(i, 0), sizes[i]);
  }
  EXPECT_LT(reader.file_bytes(), 3 * kMinPageBytes + 1000);
}

TEST(BetonWriter, ASampleLargerThanAPageIsRefusedWithThePageThatWouldDo) {
  const test::TemporaryFolder folder;
  {
    BetonWriter writer(folder / "a.beton", {{"image", FieldType::image}}, 1,
                       {.page_bytes = kMinPageBytes});
    EXPECT_THAT([&] { writer.add(raw_image(kMinPageBytes + 1)); },
                ThrowsMessage<DataError>(Names(2097152, 2097153, "--page-size 4194304")));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(BetonWriter, RefusesWrongNamesPagesAndCounts) {
  const test::TemporaryFolder folder;
  const auto write = [&](const std::vector<FieldColumn>& columns, std::uint64_t samples,
                         std::uint64_t page) {
    return
        [=, &folder] { BetonWriter(folder / "a.beton", columns, samples, {.page_bytes = page}); };
  };
  const FieldType type = FieldType::integer;
  EXPECT_THROW(write({{"", type}}, 1, kMinPageBytes)(), ConfigError);
  EXPECT_THROW(write({{"a_name_of_17_char", type}}, 1, kMinPageBytes)(), ConfigError);
  EXPECT_THROW(write({{"a\nb", type}}, 1, kMinPageBytes)(), ConfigError);
  EXPECT_THROW(write({{"a", type}, {"a", type}}, 1, kMinPageBytes)(), ConfigError);
  EXPECT_THROW(write({}, 1, kMinPageBytes)(), ConfigError);
  EXPECT_THROW(write({{"a", type}}, 0, kMinPageBytes)(), ConfigError);
  EXPECT_THROW(write({{"a", type}}, UINT64_MAX / 2, kMinPageBytes)(), ConfigError);
  for (const std::uint64_t page :
       {std::uint64_t{0}, kMinPageBytes / 2, kMinPageBytes + 1, kMaxPageBytes * 2}) {
    EXPECT_THROW(write({{"a", type}}, 1, page)(), ConfigError) << page;
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_NO_THROW(write({{"a_name_of_16_cha", type}}, 1, kMinPageBytes)());
}

/// 60 images of different sizes with labels, in several small pages.
class DatasetTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kSamples = 60;

  static Sample sample(std::uint64_t i) {
    const int side = 20 + static_cast<int>(i * 37 % 400);
    return {fmt::format("image {}", i),
            {ImageInput{{}, test::gradient(side, 2 * side, static_cast<int>(i))},
             static_cast<std::int64_t>(i % 7)}};
  }

  static std::vector<FieldPlan> fields(const ImageFieldOptions& options) {
    return {{"image", [options] { return std::make_unique<ImageField>(options); }},
            {"label", [] { return std::make_unique<IntField>(); }}};
  }

  WriteSummary write(const WriteOptions& options, const ImageFieldOptions& image,
                     const SampleProvider& provider = sample) {
    return write_dataset(path_, fields(image), kSamples, provider, options);
  }
  static WriteOptions options(int workers) {
    WriteOptions chosen;
    chosen.layout.page_bytes = kMinPageBytes;
    chosen.workers = workers;
    return chosen;
  }
  [[nodiscard]] bool folder_is_empty() const { return std::filesystem::is_empty(folder_.path()); }

  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "out.beton";
};

TEST_F(DatasetTest, IsTheSameForAnyNumberOfWorkersInEveryMode) {
  for (const ImageFieldOptions& image :
       {ImageFieldOptions{.mode = ImageWriteMode::raw},
        ImageFieldOptions{.mode = ImageWriteMode::jpg, .max_resolution_px = 100},
        ImageFieldOptions{.mode = ImageWriteMode::smart, .smart_threshold_bytes = 100'000},
        ImageFieldOptions{.mode = ImageWriteMode::proportion, .seed = 5}}) {
    const WriteSummary first = write(options(1), image);
    const std::vector<std::byte> expected = test::read_bytes(path_);
    for (const int workers : {2, 3, 8}) {
      const WriteSummary summary = write(options(workers), image);
      EXPECT_TRUE(test::read_bytes(path_) == expected) << workers;
      EXPECT_EQ(summary.tally, first.tally);
      EXPECT_EQ(summary.file_bytes, expected.size());
    }
  }
}

TEST_F(DatasetTest, ReadsBackWhatWasWritten) {
  const WriteSummary summary = write(options(2), {.mode = ImageWriteMode::raw});
  const BetonReader reader(path_);
  ASSERT_EQ(reader.size(), kSamples);
  EXPECT_GT(summary.pages, 3U);
  EXPECT_EQ(summary.tally.at("raw"), kSamples);
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    const Sample expected = sample(i);
    const Image& pixels = std::get<ImageInput>(expected.values[0]).pixels;
    const ImageRecord record = reader.image(i, 0);
    EXPECT_EQ(reader.integer(i, 1), std::get<std::int64_t>(expected.values[1]));
    ASSERT_EQ(record.width, pixels.width);
    ASSERT_EQ(record.height, pixels.height);
    EXPECT_EQ(std::memcmp(record.bytes.data(), pixels.pixels.data(), record.bytes.size()), 0);
  }
}

TEST_F(DatasetTest, TheFirstErrorInFileOrderIsReportedWithItsSample) {
  const auto provider = [](std::uint64_t i) {
    if (i == 31 || i == 40)
      return Sample{"broken.jpg", {ImageInput{{std::byte{1}}, {}}, std::int64_t{0}}};
    return sample(i);
  };
  for (const int workers : {1, 4}) {
    EXPECT_THAT([&] { write(options(workers), {}, provider); },
                ThrowsMessage<Error>(Names("sample 31", "broken.jpg", "JPEG", "PNG", "WebP")));
    EXPECT_TRUE(folder_is_empty());
  }
}

TEST_F(DatasetTest, DamagedSamplesAreLeftOutWhenAskedToWhateverTheWorkers) {
  const auto damaged = [](std::uint64_t i) { return i == 0 || i == 31 || i == 32; };
  const auto provider = [&](std::uint64_t i) {
    if (i == 32) throw DataError("row?");
    if (damaged(i)) return Sample{"broken.jpg", {ImageInput{{std::byte{1}}, {}}, std::int64_t{0}}};
    return sample(i);
  };
  std::vector<std::byte> expected;
  for (const int workers : {1, 2, 8}) {
    WriteOptions chosen = options(workers);
    chosen.on_corrupt = CorruptPolicy::skip;
    const WriteSummary summary = write(chosen, {.mode = ImageWriteMode::raw}, provider);
    ASSERT_EQ(summary.skipped.size(), 3U);
    EXPECT_EQ(summary.skipped[1].index, 31U);
    EXPECT_EQ(summary.skipped[1].name, "broken.jpg");
    EXPECT_THAT(summary.skipped[1].error, Names("JPEG", "PNG", "WebP"));
    EXPECT_EQ(summary.skipped[2].error, "row?");
    EXPECT_EQ(summary.samples, kSamples - 3);
    EXPECT_EQ(summary.tally.at("raw"), kSamples - 3);
    const std::vector<std::byte> file = test::read_bytes(path_);
    if (workers == 1) expected = file;
    EXPECT_TRUE(file == expected) << workers;
  }
  const BetonReader reader(path_);
  ASSERT_EQ(reader.size(), kSamples - 3);
  for (std::uint64_t position = 0, i = 0; i < kSamples; ++i)
    if (!damaged(i)) {
      EXPECT_EQ(reader.integer(position++, 1), std::get<std::int64_t>(sample(i).values[1]));
    }
}

TEST_F(DatasetTest, OnlyDamageIsSkippedAndNeverAllOfIt) {
  WriteOptions chosen = options(2);
  chosen.on_corrupt = CorruptPolicy::skip;
  const auto unreadable = [](std::uint64_t i) {
    if (i == 5) throw IoError("unreadable");
    return sample(i);
  };
  EXPECT_THAT([&] { write(chosen, {}, unreadable); },
              ThrowsMessage<Error>(Names("sample 5", "unreadable")));
  const auto broken = [](std::uint64_t) {
    return Sample{"broken.jpg", {ImageInput{{std::byte{1}}, {}}, std::int64_t{0}}};
  };
  EXPECT_THAT([&] { write(chosen, {}, broken); },
              ThrowsMessage<DataError>(Names(60, "broken.jpg", "image")));
  EXPECT_TRUE(folder_is_empty());
}

TEST(BetonWriter, FewerSamplesThanAnnouncedMakeAValidFile) {
  const test::TemporaryFolder folder;
  std::vector<std::byte> files[2];
  for (const std::uint64_t announced : {2, 5}) {
    BetonWriter writer(folder / "a.beton", {{"label", FieldType::integer}}, announced);
    EncodedValue value;
    value.metadata.resize(8, std::byte{1});
    writer.add({&value, 1});
    writer.add({&value, 1});
    writer.finish();
    EXPECT_EQ(BetonReader(folder / "a.beton").size(), 2U);
    files[announced == 5] = test::read_bytes(folder / "a.beton");
  }
  EXPECT_EQ(files[0], files[1]);
  BetonWriter images(folder / "images.beton", {{"image", FieldType::image}}, 1'000'000,
                     {.page_bytes = kMinPageBytes});
  EncodedValue image;
  image.metadata.resize(kImageMetadataBytes);
  image.metadata[0] = static_cast<std::byte>(ImageMode::raw);
  store(image.metadata.data() + kImageWidthAt, std::uint16_t{1});
  store(image.metadata.data() + kImageHeightAt, std::uint16_t{1});
  image.blob.resize(3, std::byte{9});
  images.add({&image, 1});
  images.finish();
  const BetonReader reader(folder / "images.beton");
  ASSERT_EQ(reader.size(), 1U);
  EXPECT_EQ(reader.image(0, 0).bytes[2], std::byte{9});
  BetonWriter none(folder / "none.beton", {{"label", FieldType::integer}}, 5);
  EXPECT_THAT([&] { none.finish(); }, Throws<DataError>());
}

TEST_F(DatasetTest, ExceptionsOfASourceReachTheCallerFromAnySample) {
  for (const std::uint64_t bad : {std::uint64_t{0}, kSamples / 2, kSamples - 1}) {
    const auto provider = [&](std::uint64_t i) {
      if (i == bad) throw IoError("unreadable");
      return sample(i);
    };
    try {
      write(options(3), {}, provider);
      FAIL() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::io);
      EXPECT_THAT(error.what(), Names(fmt::format("sample {}", bad), "unreadable"));
    }
    const auto out_of_memory = [&](std::uint64_t i) {
      if (i == bad) throw std::bad_alloc();
      return sample(i);
    };
    EXPECT_THROW(write(options(3), {}, out_of_memory), std::bad_alloc);
    EXPECT_TRUE(folder_is_empty());
  }
}

TEST_F(DatasetTest, ASampleLargerThanAPageIsNamed) {
  const auto provider = [](std::uint64_t i) {
    if (i != 12) return sample(i);
    return Sample{"large.jpg", {ImageInput{{}, test::gradient(1000, 1000)}, std::int64_t{0}}};
  };
  EXPECT_THAT([&] { write(options(2), {.mode = ImageWriteMode::raw}, provider); },
              ThrowsMessage<Error>(Names("sample 12", "large.jpg", "--page-size 4194304")));
  EXPECT_TRUE(folder_is_empty());
}

TEST_F(DatasetTest, AThreadThatCannotBeStartedIsAnErrorThatLeavesNothing) {
  if (!test::kAddressesCanBeLimited)
    GTEST_SKIP() << "the address space cannot be limited under sanitizers";
  const std::string message = test::device_error_of_few_threads(
      [this] { static_cast<void>(write(options(test::kTooManyThreads), {})); });
  EXPECT_THAT(message, Names(test::kTooManyThreads, std::strerror(EAGAIN)));
  EXPECT_TRUE(folder_is_empty());
}

TEST_F(DatasetTest, StopsWhenAskedToAndLeavesTheOldFile) {
  test::write_bytes(path_, golden_beton("scalars_only"));
  std::atomic<bool> cancel{false};
  WriteOptions chosen = options(2);
  chosen.cancel = &cancel;
  chosen.on_progress = [&](std::uint64_t samples, std::uint64_t) { cancel = samples == 20; };
  EXPECT_THROW(write(chosen, {}), Cancelled);
  EXPECT_TRUE(test::read_bytes(path_) == golden_beton("scalars_only"));
  std::filesystem::remove(path_);
  EXPECT_TRUE(folder_is_empty());
}

TEST_F(DatasetTest, TheSidecarsOfALinkAndOfItsTargetAreRemoved) {
  const std::filesystem::path target = folder_ / "v1.beton";
  WriteOptions chosen = options(2);
  chosen.layout.checksums = false;
  chosen.index_interval = 8;
  (void)write(chosen, {.mode = ImageWriteMode::jpg});
  std::filesystem::rename(path_, target);
  std::filesystem::create_symlink("v1.beton", path_);
  std::filesystem::copy_file(jpeg_sidecar(path_), jpeg_sidecar(target));
  for (const auto& name : {path_, target}) write_sums_sidecar(BetonReader(name));
  chosen.index_interval = 0;
  (void)write(chosen, {.mode = ImageWriteMode::raw});
  for (const auto& name : {path_, target}) {
    EXPECT_FALSE(std::filesystem::exists(sums_sidecar(name))) << name;
    EXPECT_FALSE(std::filesystem::exists(jpeg_sidecar(name))) << name;
    EXPECT_EQ(BetonReader(name).image_mode(0, 0), ImageMode::raw);
  }
  const std::vector<std::byte> notes(3);
  test::write_bytes(sums_sidecar(target), notes);
  EXPECT_THROW(write(chosen, {}), ConfigError);
  EXPECT_TRUE(test::read_bytes(sums_sidecar(target)) == notes);
}

TEST_F(DatasetTest, AnyFailingCallLeavesTheOldFileOrTheNewOneAndNothingElse) {
  const ImageFieldOptions image{.mode = ImageWriteMode::raw};
  (void)write(options(2), image);
  const std::vector<std::byte> whole = test::read_bytes(path_);
  const std::vector<std::byte> old = golden_beton("scalars_only");
  for (const int errno_value : {ENOSPC, EIO, EDQUOT}) {
    for (int nth = 1;; ++nth) {
      test::write_bytes(path_, old);
      test::FailingFileOps ops(nth, errno_value);
      WriteOptions chosen = options(2);
      chosen.ops = &ops;
      bool threw = false;
      try {
        (void)write(chosen, image);
      } catch (const IoError& error) {
        threw = true;
        EXPECT_THAT(error.what(), Names(path_));
      }
      ASSERT_EQ(threw, ops.failed()) << nth;
      const std::vector<std::byte> now = test::read_bytes(path_);
      EXPECT_TRUE(now == whole || (threw && now == old)) << nth;
      const auto files = std::filesystem::directory_iterator(folder_.path());
      EXPECT_EQ(std::distance(begin(files), end(files)), 1) << nth;
      if (!threw) break;
      ASSERT_LT(nth, 1000);
    }
  }
}

TEST_F(DatasetTest, ShortAndInterruptedWritesAreContinued) {
  const ImageFieldOptions image{.mode = ImageWriteMode::raw};
  (void)write(options(2), image);
  const std::vector<std::byte> whole = test::read_bytes(path_);
  // Call 1 creates the file; call 2 writes the header.
  for (int nth = 2; nth < 6; ++nth) {
    for (const int errno_value : {0, EINTR}) {
      test::FailingFileOps ops(nth, errno_value);
      WriteOptions chosen = options(2);
      chosen.ops = &ops;
      (void)write(chosen, image);
      EXPECT_TRUE(ops.failed());
      EXPECT_TRUE(test::read_bytes(path_) == whole) << nth << " " << errno_value;
    }
  }
}

TEST_F(DatasetTest, AnUnwritablePathIsNamed) {
  EXPECT_THAT([&] { write_dataset("/nonexistent/a.beton", fields({}), kSamples, sample, {}); },
              ThrowsMessage<IoError>(Names("/nonexistent/a.beton")));
  EXPECT_THAT([&] { write_dataset(folder_.path(), fields({}), kSamples, sample, {}); },
              ThrowsMessage<IoError>(Names(folder_.path())));
  EXPECT_TRUE(folder_is_empty());
}

}  // namespace
}  // namespace precast::data
