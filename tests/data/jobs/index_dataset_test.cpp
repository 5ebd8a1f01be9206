#include "data/jobs/index_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "data/beton/reader.h"
#include "data/loader/loader.h"
#include "data/transforms/image_pipeline.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;

constexpr std::uint64_t kNoLimit = UINT64_MAX;

/// A dataset of 26 JPEG photographs that FFCV wrote.
class IndexDatasetTest : public ::testing::Test {
 protected:
  IndexDatasetTest() { open("img_jpg_w3"); }

  void open(const std::string& golden) {
    test::write_bytes(path_, test::golden_beton(golden));
    reader_.emplace(path_);
  }

  std::unique_ptr<JpegIndex> indexed(int workers, std::size_t interval = 8) {
    return index_dataset(*reader_, reader_->first_field(FieldType::image), interval,
                         {.workers = workers}, summary_);
  }

  /// The pixels of two passes.
  std::vector<std::uint8_t> pixels(std::shared_ptr<JpegIndex> index, int workers) {
    LoaderOptions options;
    options.batch_size = 5;
    options.workers = workers;
    options.jpeg_index = std::move(index);
    Loader loader(*reader_, standard_train_pipeline(), options);
    std::vector<std::uint8_t> all;
    for (int epoch = 0; epoch < 2; ++epoch) {
      loader.begin_epoch({.epoch = epoch, .image_size_px = 40});
      while (const auto batch = loader.next()) {
        const auto values = batch->fields.at(0).values<std::uint8_t>();
        all.insert(all.end(), values.begin(), values.end());
      }
    }
    return all;
  }

  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "x.beton";
  std::optional<BetonReader> reader_;
  IndexSummary summary_;
};

TEST_F(IndexDatasetTest, KnowsEveryJpegWhateverTheThreads) {
  const auto one = indexed(1);
  EXPECT_EQ(summary_.jpegs, reader_->size());
  EXPECT_EQ(summary_.unindexed, 0U);
  const auto four = indexed(4);
  for (std::uint64_t sample = 0; sample < reader_->size(); ++sample) {
    EXPECT_FALSE(one->find(sample).empty());
    EXPECT_TRUE(std::ranges::equal(one->find(sample).points, four->find(sample).points));
  }
}

TEST_F(IndexDatasetTest, BatchesAreTheSameWithoutAnIndexWithOneAndWhileItGrows) {
  const auto expected = pixels(nullptr, 1);
  for (const int workers : {1, 3}) {
    const auto growing = open_jpeg_index(*reader_, kNoLimit);
    EXPECT_EQ(pixels(growing, workers), expected);
    for (std::uint64_t sample = 0; sample < reader_->size(); ++sample)
      EXPECT_FALSE(growing->accepts(sample)) << "one pass visits every sample";
    EXPECT_EQ(pixels(growing, workers), expected);
  }
  indexed(2)->write(jpeg_sidecar(path_), reader_->fingerprint());
  const auto sidecar = open_jpeg_index(*reader_, /*max_bytes=*/0);
  ASSERT_NE(sidecar, nullptr);
  EXPECT_FALSE(sidecar->find(0).empty());
  EXPECT_EQ(pixels(sidecar, 3), expected);
}

TEST_F(IndexDatasetTest, BatchesAreTheSameForAnyDistanceOfCheckpoints) {
  const auto expected = pixels(nullptr, 1);
  std::uint64_t bytes = UINT64_MAX;
  for (const std::size_t interval : {1U, 2U, 4U, 16U, 4096U}) {
    indexed(2, interval)->write(jpeg_sidecar(path_), reader_->fingerprint());
    const auto sidecar = open_jpeg_index(*reader_, /*max_bytes=*/0);
    ASSERT_NE(sidecar, nullptr);
    EXPECT_EQ(sidecar->interval(), interval);
    EXPECT_LE(sidecar->bytes(), std::exchange(bytes, sidecar->bytes())) << interval;
    EXPECT_EQ(pixels(sidecar, 3), expected) << interval;
  }
}

TEST_F(IndexDatasetTest, BatchesAreTheSameWithADamagedSidecar) {
  const auto expected = pixels(nullptr, 1);
  const auto path = jpeg_sidecar(path_);
  indexed(2)->write(path, reader_->fingerprint());
  const std::vector<std::byte> good = test::read_bytes(path);
  const auto damaged_at = [&](std::size_t at) {
    std::vector<std::byte> bad = good;
    bad[at] ^= std::byte{1};
    test::write_bytes(path, bad);
    return open_jpeg_index(*reader_, /*max_bytes=*/0);
  };
  // The last bytes of the sidecar belong to its table.
  EXPECT_EQ(damaged_at(good.size() - 1), nullptr);
  const auto sidecar = damaged_at(good.size() / 2);
  ASSERT_NE(sidecar, nullptr);
  testing::internal::CaptureStderr();
  EXPECT_EQ(pixels(sidecar, 3), expected);
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_THAT(warning, Names(path));
  EXPECT_EQ(std::ranges::count(warning, '\n'), 1) << warning;
  EXPECT_TRUE(sidecar->find(0).empty());
}

TEST_F(IndexDatasetTest, ASidecarOfAnotherFileIsLeft) {
  indexed(1)->write(jpeg_sidecar(path_), "0000000000000001");
  EXPECT_EQ(open_jpeg_index(*reader_, 0), nullptr);
  const auto fresh = open_jpeg_index(*reader_, kNoLimit);
  ASSERT_NE(fresh, nullptr);
  EXPECT_TRUE(fresh->accepts(0));
}

TEST_F(IndexDatasetTest, ThereIsNoneForRawImages) {
  open("img_raw_w1");
  EXPECT_EQ(open_jpeg_index(*reader_, kNoLimit), nullptr);
  EXPECT_EQ(indexed(1)->bytes(), reader_->size() * sizeof(void*));
  EXPECT_EQ(summary_.jpegs, 0U);
}

TEST_F(IndexDatasetTest, LittleMemoryMeansFewerCheckpoints) {
  EXPECT_EQ(open_jpeg_index(*reader_, kNoLimit)->interval(), kDefaultCheckpointInterval);
  EXPECT_GT(open_jpeg_index(*reader_, 100)->interval(), kDefaultCheckpointInterval);
}

TEST_F(IndexDatasetTest, FilesShareMemoryOfFewerBytesThanSamples) {
  const BetonReader files(std::vector<std::filesystem::path>{path_, path_});
  EXPECT_NE(open_jpeg_index(files, files.size() - 1), nullptr);
}

TEST_F(IndexDatasetTest, DamagedSamplesAreReportedAndSkipped) {
  std::vector<std::byte> file = test::golden_beton("img_jpg_w3");
  for (const std::uint64_t sample : {7U, 3U})
    file[reader_->blob_offset(sample, reader_->first_field(FieldType::image))] = std::byte{0};
  test::write_bytes(path_, file);
  reader_.emplace(path_);
  const auto index = indexed(3);
  EXPECT_EQ(summary_.jpegs, reader_->size());
  EXPECT_EQ(summary_.unindexed, 0U);
  ASSERT_EQ(summary_.damaged.size(), 2U);
  EXPECT_EQ(summary_.damaged[0].sample, 3U);
  EXPECT_EQ(summary_.damaged[1].sample, 7U);
  EXPECT_THAT(summary_.damaged[1].error, Names("JPEG"));
  EXPECT_TRUE(index->find(7).empty());
  EXPECT_FALSE(index->accepts(7));
  EXPECT_FALSE(index->find(8).empty());
}

TEST_F(IndexDatasetTest, StopsWhenAskedTo) {
  const std::atomic<bool> cancel{true};
  IndexSummary summary;
  const auto index = index_dataset(*reader_, reader_->first_field(FieldType::image), 8,
                                   {.workers = 2, .cancel = &cancel}, summary);
  EXPECT_TRUE(summary.cancelled);
  EXPECT_EQ(summary.jpegs, 0U);
  EXPECT_FALSE(index->write(jpeg_sidecar(path_), reader_->fingerprint(), &cancel));
  using Entries = std::filesystem::directory_iterator;
  EXPECT_EQ(std::distance(Entries(folder_.path()), Entries()), 1);
}

}  // namespace
}  // namespace precast::data
