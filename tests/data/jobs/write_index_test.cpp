// Tests the JPEG index that write_dataset() writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <optional>

#include "data/beton/reader.h"
#include "data/jobs/index_dataset.h"
#include "data/jobs/write_dataset.h"
#include "data/write/image_field.h"
#include "data/write/number_fields.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/failing_file_ops.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::JpegKind;
using test::Names;
using Bytes = std::vector<std::byte>;

/// More samples than a block of the sidecar contains (64).
constexpr std::uint64_t kSamples = 150;
constexpr std::size_t kInterval = 2;

/// Returns an image file whose kind and size depend on `i`.
Bytes image_file(std::uint64_t i) {
  const auto side = static_cast<int>(20 + i * 7 % 90);
  const Image image = test::gradient(side, side + 13, static_cast<int>(i));
  constexpr JpegKind kKinds[] = {JpegKind::rgb, JpegKind::grey, JpegKind::cmyk,
                                 JpegKind::progressive, JpegKind::three_scans};
  return i % 6 == 5 ? test::png_file(image) : test::jpeg_file(image, kKinds[i % 6]);
}

class WriteIndexTest : public ::testing::Test {
 protected:
  WriteIndexTest() {
    for (std::uint64_t i = 0; i < kSamples; ++i) files_.push_back(image_file(i));
  }

  [[nodiscard]] static WriteOptions options(int workers) {
    WriteOptions chosen;
    chosen.layout.page_bytes = kMinPageBytes;
    chosen.workers = workers;
    chosen.index_interval = kInterval;
    return chosen;
  }

  /// Writes a dataset with fields before and after the indexed field.
  WriteSummary write(const WriteOptions& options, const ImageFieldOptions& image) {
    const auto images = [image] { return std::make_unique<ImageField>(image); };
    const auto numbers = [] { return std::make_unique<IntField>(); };
    const std::vector<FieldPlan> fields = {
        {"number", numbers}, {"image", images}, {"second", images}};
    return write_dataset(
        path_, fields, kSamples,
        [this](std::uint64_t i) {
          const std::uint64_t other = (i + 1) % kSamples;
          return Sample{"",
                        {static_cast<std::int64_t>(i), ImageInput{files_[i], {}},
                         ImageInput{files_[other], {}}}};
        },
        options);
  }

  /// The bytes of the index that `precast index` would write.
  [[nodiscard]] Bytes indexed_again(IndexSummary& summary) const {
    const BetonReader reader(path_);
    const auto index = index_dataset(reader, reader.first_field(FieldType::image), kInterval,
                                     {.workers = 2}, summary);
    EXPECT_TRUE(index->write(folder_ / "again", reader.fingerprint()));
    return test::read_bytes(folder_ / "again");
  }

  [[nodiscard]] std::vector<std::filesystem::path> left() const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      if (entry.path() != path_ && entry.path() != sidecar_) found.push_back(entry.path());
    return found;
  }

  /// Writes an older dataset with the same name, and its index.
  void put_old() {
    test::write_bytes(path_, old_);
    JpegSidecarWriter writer(sidecar_, kInterval);
    writer.add({});
    writer.complete(BetonReader(path_).fingerprint());
    writer.commit();
    old_index_ = test::read_bytes(sidecar_);
  }

  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "a.beton";
  std::filesystem::path sidecar_ = jpeg_sidecar(path_);
  std::vector<Bytes> files_;
  Bytes old_ = test::golden_beton("scalars_only");
  Bytes old_index_;
};

TEST_F(WriteIndexTest, IsTheOneThatIndexMakesForEachModeWhateverTheWorkers) {
  using Mode = ImageWriteMode;
  const std::vector<ImageFieldOptions> ways = {
      {.mode = Mode::jpg},
      {.mode = Mode::jpg, .max_resolution_px = 50},
      {.mode = Mode::jpg, .passthrough = true},
      {.mode = Mode::jpg, .max_resolution_px = 70, .passthrough = true},
      {.mode = Mode::proportion, .passthrough = true},
      {.mode = Mode::smart, .smart_threshold_bytes = 9000},
      {.mode = Mode::keep, .passthrough = true},
      {.mode = Mode::raw}};
  for (std::size_t way = 0; way < ways.size(); ++way) {
    Bytes first;
    for (const int workers : {1, 2, 5}) {
      const WriteSummary summary = write(options(workers), ways[way]);
      const Bytes index = test::read_bytes(sidecar_);
      EXPECT_EQ(summary.index_bytes, index.size());
      IndexSummary again;
      EXPECT_TRUE(index == indexed_again(again)) << way << " " << workers;
      EXPECT_EQ(summary.tally.at("indexed"), again.jpegs - again.unindexed) << way;
      if (workers == 1) first = index;
      EXPECT_TRUE(index == first) << way << " " << workers;
    }
  }
}

TEST_F(WriteIndexTest, HasThePlacesOfTheSamplesThatWereNotLeftOut) {
  for (const std::uint64_t i : {0U, 1U, 60U, 149U}) files_[i].resize(30);
  for (const int workers : {1, 4}) {
    WriteOptions chosen = options(workers);
    chosen.on_corrupt = CorruptPolicy::skip;
    const WriteSummary summary = write(chosen, {});
    EXPECT_EQ(summary.samples, kSamples - 6) << "each image is in two samples";
    IndexSummary again;
    EXPECT_TRUE(test::read_bytes(sidecar_) == indexed_again(again));
    EXPECT_EQ(summary.tally.at("indexed"), again.jpegs);
  }
}

TEST_F(WriteIndexTest, ChangesNothingInTheDataset) {
  (void)write(options(2), {});
  const Bytes with = test::read_bytes(path_);
  WriteOptions unindexed = options(2);
  unindexed.index_interval = 0;
  const WriteSummary summary = write(unindexed, {});
  EXPECT_TRUE(test::read_bytes(path_) == with);
  EXPECT_EQ(summary.index_bytes, 0U);
  EXPECT_FALSE(summary.tally.contains("indexed"));
  EXPECT_FALSE(std::filesystem::exists(sidecar_)) << "the index of the older file must be removed";
}

TEST_F(WriteIndexTest, AnyFailingCallLeavesNoIndexOfAnotherDataset) {
  (void)write(options(2), {});
  const Bytes whole = test::read_bytes(path_);
  const Bytes index = test::read_bytes(sidecar_);
  int new_without_index = 0;
  for (const bool was_there : {false, true}) {
    for (int nth = 1;; ++nth) {
      std::filesystem::remove(path_);
      std::filesystem::remove(sidecar_);
      if (was_there) put_old();
      test::FailingFileOps ops(nth, ENOSPC);
      WriteOptions chosen = options(2);
      chosen.ops = &ops;
      bool threw = false;
      try {
        (void)write(chosen, {});
      } catch (const IoError& error) {
        threw = true;
        EXPECT_THAT(error.what(), Names(path_));
      }
      ASSERT_EQ(threw, ops.failed()) << nth;
      EXPECT_TRUE(left().empty()) << nth;
      const bool has_file = std::filesystem::exists(path_);
      const Bytes file = has_file ? test::read_bytes(path_) : Bytes();
      EXPECT_TRUE(!has_file ? !was_there : file == whole || (was_there && threw && file == old_));
      if (std::filesystem::exists(sidecar_)) {
        ASSERT_TRUE(has_file) << nth;
        EXPECT_TRUE(test::read_bytes(sidecar_) == (file == whole ? index : old_index_)) << nth;
      } else if (file == whole) {
        ++new_without_index;
      }
      if (!threw) {
        EXPECT_TRUE(std::filesystem::exists(sidecar_));
        break;
      }
      ASSERT_LT(nth, 1000);
    }
  }
  // Four calls come after the dataset is in place: sync of its folder; sync, close and rename of
  // the index.
  EXPECT_EQ(new_without_index, 2 * 4);
}

TEST_F(WriteIndexTest, StoppingLeavesTheOldFileAndItsIndex) {
  put_old();
  std::atomic<bool> cancel{false};
  WriteOptions chosen = options(2);
  chosen.cancel = &cancel;
  chosen.on_progress = [&](std::uint64_t samples, std::uint64_t) { cancel = samples > 100; };
  EXPECT_THROW((void)write(chosen, {}), Cancelled);
  EXPECT_TRUE(test::read_bytes(path_) == old_);
  EXPECT_TRUE(test::read_bytes(sidecar_) == old_index_);
  EXPECT_TRUE(left().empty());
}

TEST_F(WriteIndexTest, NeedsAnImageField) {
  const std::vector<FieldPlan> fields = {{"number", [] { return std::make_unique<IntField>(); }}};
  const auto sample = [](std::uint64_t) { return Sample{"", {std::int64_t{1}}}; };
  EXPECT_THROW((void)write_dataset(path_, fields, 1, sample, options(1)), ConfigError);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

}  // namespace
}  // namespace precast::data
