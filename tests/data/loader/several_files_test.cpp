// Checks that several files, opened as one dataset, give the same results as the file that
// `precast merge` writes from them.
#include "data/beton/several_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "data/jobs/copy_dataset.h"
#include "data/jobs/index_dataset.h"
#include "data/loader/loader.h"
#include "data/loader/memory_plan.h"
#include "data/loader/preload.h"
#include "data/order/pages.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/data/loader/batch_hash.h"
#include "tests/support/message_matchers.h"
#include "tests/support/part_spec.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::hashes_of_pass;
using test::Names;
using testing::ThrowsMessage;

using Paths = std::vector<std::filesystem::path>;

/// Merges the files like `precast merge`.
void merge(const Paths& paths, const std::filesystem::path& out) {
  std::vector<BetonReader> readers;
  for (const auto& path : paths) readers.emplace_back(path);
  DatasetCopy copy;
  for (const BetonReader& reader : readers) {
    copy.files.push_back(&reader);
    copy.num_samples += reader.size();
  }
  copy.sample = [&](std::uint64_t i) {
    CopiedSample from{0, i};
    while (from.sample >= readers[from.file].size()) from.sample -= readers[from.file++].size();
    return from;
  };
  WriteOptions options;
  options.layout.page_bytes = copy_page_bytes(copy.files);
  (void)copy_dataset(out, copy, options);
}

/// Requests for each rank of worlds of 1, 2 and 3 ranks: a complete pass, and a pass that starts at
/// batch `skipped`.
std::vector<EpochRequest> passes(std::int64_t image_size_px, std::int64_t skipped) {
  std::vector<EpochRequest> all;
  for (const int world : {1, 2, 3}) {
    for (int rank = 0; rank < world; ++rank) {
      for (const std::int64_t first : {std::int64_t{0}, skipped})
        all.push_back({.epoch = 1,
                       .first_batch = first,
                       .image_size_px = image_size_px,
                       .rank = rank,
                       .world = world});
    }
  }
  return all;
}

/// Three files of raw images of different sizes, with pages of 2, 4 and 2 MiB; one file has no
/// checksums.
class SeveralFilesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TemporaryFolder;
    test::write_made_beton(*folder_ / "a.beton", {.samples = 150, .width = 120, .height = 110});
    test::write_made_beton(
        *folder_ / "b.beton",
        {.samples = 97, .width = 200, .height = 140, .page_bytes = std::uint64_t{4} << 20});
    test::write_made_beton(*folder_ / "c.beton",
                           {.samples = 61, .width = 64, .height = 300, .checksums = false});
    merge(paths(), *folder_ / "all.beton");
  }
  static void TearDownTestSuite() { delete folder_; }
  static Paths paths() {
    return {*folder_ / "a.beton", *folder_ / "b.beton", *folder_ / "c.beton"};
  }

  static LoaderOptions options(const BetonReader& reader, const OrderOptions& order, int workers) {
    LoaderOptions options;
    options.batch_size = 16;
    options.workers = workers;
    options.seed = 5;
    options.order = make_order(reader, order);
    options.cache_bytes = std::uint64_t{24} << 20;
    return options;
  }
  static std::vector<unsigned long> hashes(const BetonReader& reader, const OrderOptions& order,
                                           int workers, const EpochRequest& request) {
    Loader loader(reader, standard_train_pipeline(), options(reader, order, workers));
    return hashes_of_pass(loader, request);
  }
  static test::TemporaryFolder* folder_;
};

test::TemporaryFolder* SeveralFilesTest::folder_ = nullptr;

TEST_F(SeveralFilesTest, BatchesAreThoseOfTheMerge) {
  const BetonReader merged(*folder_ / "all.beton");
  const BetonReader mapped(paths());
  const BetonReader on_disk(paths(), BlobAccess::on_disk);
  const EpochRequest request{.epoch = 2, .image_size_px = 16};
  const std::vector<OrderOptions> orders = {
      {.name = "sequential"},
      {.name = "random"},
      {.name = "random", .subset = "100:280", .filter = "label < 7 and width > 100"},
      {.name = "random", .subset = "random:90", .repeats = 2},
      {.name = "quasi_random", .window_pages = 3},
      {.name = "quasi_random", .subset = "40:", .window_pages = 2},
      {.name = "class_balanced"}};
  for (const OrderOptions& order : orders) {
    const auto expected = hashes(merged, order, 1, request);
    ASSERT_GT(expected.size(), 3U);
    for (const int workers : {1, 2, 3, 8}) {
      EXPECT_EQ(hashes(mapped, order, workers, request), expected) << order.name << workers;
      EXPECT_EQ(hashes(on_disk, order, workers, request), expected) << order.name << workers;
    }
  }
}

TEST_F(SeveralFilesTest, EveryOrderOfEveryRankIsThatOfTheMergeAlsoWhenAPassStartsLater) {
  const BetonReader merged(*folder_ / "all.beton");
  const BetonReader mapped(paths());
  const BetonReader on_disk(paths(), BlobAccess::on_disk);
  OrderRegistry registry{"order"};
  register_orders(registry);
  for (const auto& entry : registry.entries()) {
    OrderOptions order{.name = entry.name, .window_pages = 3};
    if (entry.name == "weighted")
      order.part = test::part_spec("", "{weight_field: weight}").options;
    for (const EpochRequest& request : passes(/*image_size_px=*/16, /*skipped=*/2)) {
      const auto expected = hashes(merged, order, 2, request);
      ASSERT_GT(expected.size(), 3U);
      EXPECT_EQ(hashes(mapped, order, 2, request), expected) << entry.name << request.rank;
      EXPECT_EQ(hashes(on_disk, order, 2, request), expected) << entry.name << request.rank;
    }
  }
}

TEST_F(SeveralFilesTest, ReadsPastThePageCacheToo) {
  std::optional<BetonReader> direct;
  try {
    direct.emplace(paths(), BlobAccess::on_disk_direct);
  } catch (const IoError&) {
    GTEST_SKIP() << "this file system does not support O_DIRECT";
  }
  const BetonReader merged(*folder_ / "all.beton");
  EXPECT_EQ(hashes(*direct, {.name = "random"}, 3, {.image_size_px = 16}),
            hashes(merged, {.name = "random"}, 3, {.image_size_px = 16}));
}

TEST_F(SeveralFilesTest, PagesAreThoseOfTheMerge) {
  const BetonReader merged(*folder_ / "all.beton");
  const BetonReader files(paths());
  EXPECT_EQ(files.header().page_bytes, merged.header().page_bytes);
  const SampleSet all(0, merged.size());
  EXPECT_EQ(pages_of(files, all), pages_of(merged, all));
  EXPECT_EQ(pages_of(merged, SampleSet(std::vector<std::uint64_t>{3, 200})),
            (std::vector{page_of(merged, 3), page_of(merged, 200)}));
}

TEST_F(SeveralFilesTest, PagesOfSmallAndMissingValuesToo) {
  // Samples with all kinds of fields, including empty strings. There are enough samples for several
  // pages.
  const std::string golden = test::put_golden_beton(folder_->path(), "allfields_w1");
  const BetonReader one(golden);
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < one.size(); ++i) {
    for (std::size_t field = 0; field < one.fields().size(); ++field)
      bytes += one.blob_bytes(i, field);
  }
  DatasetCopy copy;
  copy.files = {&one};
  copy.num_samples = one.size() * (1 + (std::uint64_t{5} << 19) / bytes);
  copy.sample = [&](std::uint64_t i) { return CopiedSample{0, i % one.size()}; };
  WriteOptions small;
  small.layout.page_bytes = kMinPageBytes;
  (void)copy_dataset(*folder_ / "big.beton", copy, small);
  const Paths many = {*folder_ / "big.beton", golden, *folder_ / "big.beton"};
  merge(many, *folder_ / "many.beton");
  const BetonReader merged(*folder_ / "many.beton");
  const BetonReader files(many);
  const SampleSet all(0, merged.size());
  const auto pages = pages_of(files, all);
  EXPECT_EQ(pages, pages_of(merged, all));
  EXPECT_GE(pages.back(), pages.front() + 2);
  for (std::uint64_t i = 0; i < merged.size(); ++i) {
    for (std::size_t field = 0; field < merged.fields().size(); ++field)
      ASSERT_EQ(files.blob_bytes(i, field), merged.blob_bytes(i, field));
  }
}

TEST_F(SeveralFilesTest, SamplesFollowEachOtherAndAreNamedByTheirFile) {
  const BetonReader files(paths());
  EXPECT_EQ(files.size(), 308U);
  EXPECT_EQ(files.num_files(), 3U);
  EXPECT_EQ(files.locate(149).file, 0U);
  EXPECT_EQ(files.locate(150).file, 1U);
  EXPECT_EQ(files.locate(150).sample, 0U);
  EXPECT_EQ(files.locate(307).sample, 60U);
  EXPECT_THAT(files.sample_text(249), Names("c.beton", "sample 2"));
  EXPECT_EQ(files.image_size(246, 0).width, 200);
  EXPECT_EQ(files.floating(247, 2), 0.0);
  EXPECT_THROW((void)files.integer(308, 1), std::logic_error);
  EXPECT_THROW((void)files.bytes(), std::logic_error);
  EXPECT_THROW((void)files.sums(), std::logic_error);
  std::uint64_t bytes = 0;
  for (const BetonReader& file : files.files()) bytes += file.file_bytes();
  EXPECT_EQ(files.file_bytes(), bytes);
  EXPECT_NO_THROW(preload(files));
  const MemoryPlan plan = plan_memory(files, standard_train_pipeline(), {}, 16, 1);
  EXPECT_EQ(plan.mapped, bytes);
}

TEST_F(SeveralFilesTest, TheFingerprintDependsOnEveryFileAndOnTheirOrder) {
  const Paths all = paths();
  const std::string here = BetonReader(all).fingerprint();
  EXPECT_EQ(BetonReader(Paths{all[0]}).fingerprint(), BetonReader(all[0]).fingerprint());
  const BetonReader swapped(Paths{all[1], all[0], all[2]});
  EXPECT_NE(swapped.fingerprint(), here);
  const BetonReader shorter(Paths{all[0], all[1]});
  EXPECT_NE(shorter.fingerprint(), here);
  const BetonReader on_disk(all, BlobAccess::on_disk);
  EXPECT_EQ(on_disk.fingerprint(), here);
}

TEST_F(SeveralFilesTest, ValuesAreCheckedAgainstTheirFilesChecksums) {
  std::vector<std::byte> bytes = test::read_bytes(*folder_ / "b.beton");
  const BetonReader b(*folder_ / "b.beton");
  bytes[b.blob_offset(5, 0) + 7] ^= std::byte{1};
  test::write_bytes(*folder_ / "changed.beton", bytes);
  const BetonReader files(Paths{*folder_ / "a.beton", *folder_ / "changed.beton"});
  EXPECT_NO_THROW(files.check_value(154, 0, files.blob(154, 0)));
  EXPECT_THAT([&] { files.check_value(155, 0, files.blob(155, 0)); },
              ThrowsMessage<DataError>(Names("changed.beton", "sample 5", "'image'")));
  LoaderOptions verified = options(files, {}, 2);
  verified.verify = true;
  verified.on_corrupt = OnCorrupt::replace;
  Loader loader(files, standard_train_pipeline(), verified);
  (void)hashes_of_pass(loader, {.image_size_px = 16});
  const auto replaced = loader.statistics().replaced;
  ASSERT_EQ(replaced.size(), 1U);
  EXPECT_EQ(replaced[0].sample, 155U);
  EXPECT_EQ(replaced[0].by, 156U);
}

TEST_F(SeveralFilesTest, TheErrorForFilesWithOtherFieldsNamesBoth) {
  const std::string other = test::put_golden_beton(folder_->path(), "img_raw_w1");
  for (const BlobAccess access : {BlobAccess::mapped, BlobAccess::on_disk}) {
    EXPECT_THAT(
        [&] {
          BetonReader(Paths{*folder_ / "a.beton", other}, access);
        },
        ThrowsMessage<DataError>(Names("a.beton", "img_raw_w1", "'weight' float", 3, 2)));
  }
  EXPECT_THROW(BetonReader(Paths{*folder_ / "a.beton", *folder_ / "none.beton"}), IoError);
}

/// Two files with the JPEGs that FFCV wrote; two samples of the first one are damaged.
class SeveralJpegFilesTest : public ::testing::Test {
 protected:
  SeveralJpegFilesTest() {
    std::vector<std::byte> bytes = test::golden_beton("img_jpg_w3");
    test::write_bytes(paths_[1], bytes);
    const BetonReader reader({bytes.data(), bytes.size()}, "golden");
    // Damages the last sample of the first file, and sample 7.
    for (const std::uint64_t sample : {std::uint64_t{7}, reader.size() - 1})
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(reader.blob_offset(sample, 0)), 40,
                  std::byte{0});
    test::write_bytes(paths_[0], bytes);
    merge(paths_, folder_ / "all.beton");
  }
  struct Pass {
    std::vector<unsigned long> hashes;
    std::vector<ReplacedSample> replaced;
  };
  static Pass pass(const BetonReader& reader, int workers, std::shared_ptr<JpegIndex> index,
                   const EpochRequest& request = {.epoch = 4, .image_size_px = 24},
                   const std::string& order = "random") {
    LoaderOptions options;
    options.batch_size = 5;
    options.workers = workers;
    options.on_corrupt = OnCorrupt::replace;
    options.order = make_order(reader, {.name = order, .window_pages = 2});
    options.jpeg_index = std::move(index);
    Loader loader(reader, standard_train_pipeline(), options);
    Pass pass{hashes_of_pass(loader, request), {}};
    pass.replaced = loader.statistics().replaced;
    return pass;
  }

  test::TemporaryFolder folder_;
  const Paths paths_ = {folder_ / "a.beton", folder_ / "b.beton"};
};

TEST_F(SeveralJpegFilesTest, ReplacementsAreThoseOfTheMerge) {
  const BetonReader merged(folder_ / "all.beton");
  const BetonReader files(paths_);
  const BetonReader on_disk(paths_, BlobAccess::on_disk);
  const Pass expected = pass(merged, 1, nullptr);
  ASSERT_EQ(expected.replaced.size(), 2U);
  const std::uint64_t last = merged.size() / 2 - 1;
  EXPECT_EQ(expected.replaced[1].sample, last);
  for (const int workers : {1, 2, 3, 8}) {
    for (const BetonReader* reader : {&files, &on_disk}) {
      const Pass found = pass(*reader, workers, nullptr);
      EXPECT_EQ(found.hashes, expected.hashes);
      ASSERT_EQ(found.replaced.size(), 2U);
      EXPECT_EQ(found.replaced[0].by, expected.replaced[0].by);
      EXPECT_EQ(found.replaced[1].sample, last);
      EXPECT_EQ(found.replaced[1].by, last + 1);
      EXPECT_THAT(found.replaced[1].error, Names("a.beton", "sample 25"));
    }
  }
}

TEST_F(SeveralJpegFilesTest, EachFileHasItsOwnIndex) {
  const BetonReader merged(folder_ / "all.beton");
  const BetonReader files(paths_);
  const auto expected = pass(merged, 2, nullptr).hashes;
  EXPECT_EQ(open_jpeg_index(files, 0), nullptr);
  const auto growing = open_jpeg_index(files, UINT64_MAX);
  ASSERT_NE(growing, nullptr);
  EXPECT_EQ(growing->samples(), merged.size());
  EXPECT_EQ(pass(files, 2, growing).hashes, expected);
  EXPECT_FALSE(growing->find(merged.size() - 1).empty());
  EXPECT_EQ(pass(files, 2, growing).hashes, expected);

  // A sidecar of the second file, with a different interval between checkpoints.
  const BetonReader second(paths_[1]);
  IndexSummary summary;
  const auto made = index_dataset(second, 0, 4, {.workers = 1}, summary);
  made->write(jpeg_sidecar(paths_[1]), second.fingerprint());
  const std::uint64_t first = merged.size() / 2;
  const auto half = open_jpeg_index(files, 0);
  ASSERT_NE(half, nullptr);
  EXPECT_TRUE(half->find(first - 2).empty());
  EXPECT_EQ(half->find(first).interval, 4U);
  EXPECT_EQ(half->interval(first), 4U);
  EXPECT_TRUE(std::ranges::equal(half->find(first + 3).points, made->find(3).points));
  for (const int workers : {1, 2, 3, 8}) EXPECT_EQ(pass(files, workers, half).hashes, expected);
  const auto both = open_jpeg_index(files, UINT64_MAX);
  for (const int workers : {1, 3}) EXPECT_EQ(pass(files, workers, both).hashes, expected);
  EXPECT_EQ(both->interval(0), kDefaultCheckpointInterval);
  EXPECT_GE(both->bytes(), made->bytes());
}

TEST_F(SeveralJpegFilesTest, WithAnyIndexEveryPassIsThatOfTheMergeWithItsOwn) {
  const auto write_index = [](const std::filesystem::path& path, std::size_t interval) {
    const BetonReader reader(path);
    IndexSummary summary;
    index_dataset(reader, 0, interval, {.workers = 1}, summary)
        ->write(jpeg_sidecar(path), reader.fingerprint());
  };
  const BetonReader merged(folder_ / "all.beton");
  const BetonReader files(paths_);
  std::vector<std::shared_ptr<JpegIndex>> indexes = {nullptr, open_jpeg_index(files, UINT64_MAX)};
  write_index(paths_[0], 8);
  indexes.push_back(open_jpeg_index(files, UINT64_MAX));
  write_index(paths_[1], 3);
  write_index(folder_ / "all.beton", 5);
  indexes.push_back(open_jpeg_index(files, 0));
  EXPECT_EQ(indexes.back()->interval(merged.size() - 1), 3U);
  const auto index_of_merge = open_jpeg_index(merged, 0);
  for (const std::string order : {"sequential", "random", "quasi_random"}) {
    for (const EpochRequest& request : passes(/*image_size_px=*/24, /*skipped=*/1)) {
      const auto expected = pass(merged, 2, index_of_merge, request, order).hashes;
      ASSERT_GT(expected.size(), 1U);
      for (const auto& index : indexes)
        EXPECT_EQ(pass(files, 2, index, request, order).hashes, expected) << order << request.rank;
    }
  }
}

TEST_F(SeveralJpegFilesTest, ADamagedSidecarLosesOnlyTheIndexOfItsFile) {
  const BetonReader merged(folder_ / "all.beton");
  const BetonReader files(paths_);
  for (const std::filesystem::path& path : paths_) {
    const BetonReader reader(path);
    IndexSummary summary;
    index_dataset(reader, 0, 4, {.workers = 1}, summary)
        ->write(jpeg_sidecar(path), reader.fingerprint());
  }
  std::vector<std::byte> bytes = test::read_bytes(jpeg_sidecar(paths_[0]));
  bytes.back() ^= std::byte{1};
  test::write_bytes(jpeg_sidecar(paths_[0]), bytes);
  const auto index = open_jpeg_index(files, 0);
  ASSERT_NE(index, nullptr);
  EXPECT_TRUE(index->find(0).empty());
  EXPECT_FALSE(index->find(merged.size() / 2).empty());
  EXPECT_EQ(pass(files, 2, index).hashes, pass(merged, 2, nullptr).hashes);
}

}  // namespace
}  // namespace precast::data
