#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "data/beton/reader.h"
#include "data/loader/loader.h"
#include "data/loader/memory_plan.h"
#include "data/loader/preload.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/data/loader/batch_hash.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::hashes_of_pass;
using test::Names;
using ::testing::AllOf;
using ::testing::Not;

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;

/// 500 raw images of 120 x 120 px in 11 pages of 2 MiB.
class LoaderOnDiskTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TemporaryFolder;
    test::write_made_beton(*folder_ / "x.beton", {.samples = 500, .width = 120, .height = 120});
  }
  static void TearDownTestSuite() { delete folder_; }

  static LoaderOptions options(const BetonReader& reader, const std::string& order, int workers = 3,
                               std::uint64_t cache_mb = 16) {
    LoaderOptions options;
    options.batch_size = 16;
    options.workers = workers;
    options.seed = 5;
    options.order = make_order(reader, {.name = order, .window_pages = 3});
    options.cache_bytes = cache_mb * kMebibyte;
    return options;
  }
  static test::TemporaryFolder* folder_;
};

test::TemporaryFolder* LoaderOnDiskTest::folder_ = nullptr;

TEST_F(LoaderOnDiskTest, BatchesAreThoseOfTheMappedFile) {
  const BetonReader mapped(*folder_ / "x.beton");
  const BetonReader on_disk(*folder_ / "x.beton", BlobAccess::on_disk);
  const EpochRequest request{.epoch = 3, .image_size_px = 16};
  for (const std::string order : {"sequential", "random", "quasi_random"}) {
    Loader reference(mapped, standard_train_pipeline(), options(mapped, order, 1));
    const auto expected = hashes_of_pass(reference, request);
    for (const int workers : {1, 2, 3, 8, 16}) {
      for (const std::uint64_t cache_mb : {2, 4, 10, 64}) {
        LoaderOptions small = options(on_disk, order, workers, cache_mb);
        small.batches_ahead = 1 + workers % 4;
        Loader cached(on_disk, standard_train_pipeline(), small);
        EXPECT_EQ(hashes_of_pass(cached, request), expected)
            << order << ", " << workers << " workers, " << cache_mb << " MiB";
        EXPECT_LE(cached.statistics().cache_peak_bytes, cache_mb * kMebibyte);
      }
    }
  }
}

TEST_F(LoaderOnDiskTest, PhotographsInAFileOfFfcvToo) {
  test::write_bytes(*folder_ / "ffcv.beton", test::golden_beton("img_jpg_w3"));
  const BetonReader mapped(*folder_ / "ffcv.beton");
  const BetonReader on_disk(*folder_ / "ffcv.beton", BlobAccess::on_disk);
  const BetonReader direct = [] {
    try {
      return BetonReader(*folder_ / "ffcv.beton", BlobAccess::on_disk_direct);
    } catch (const IoError&) {
      return BetonReader(*folder_ / "ffcv.beton", BlobAccess::on_disk);
    }
  }();
  EXPECT_EQ(mapped.fingerprint(), on_disk.fingerprint());
  Loader reference(mapped, standard_train_pipeline(), options(mapped, "random"));
  const auto expected = hashes_of_pass(reference, {.image_size_px = 24});
  Loader cached(on_disk, standard_train_pipeline(), options(on_disk, "random"));
  EXPECT_EQ(hashes_of_pass(cached, {.image_size_px = 24}), expected);
  Loader past_cache(direct, standard_train_pipeline(), options(direct, "random"));
  EXPECT_EQ(hashes_of_pass(past_cache, {.image_size_px = 24}), expected);
}

TEST_F(LoaderOnDiskTest, QuasiRandomReadsEachPageOnceAnEpochAndAPassMayStartAnywhere) {
  const BetonReader on_disk(*folder_ / "x.beton", BlobAccess::on_disk);
  Loader cached(on_disk, standard_train_pipeline(), options(on_disk, "quasi_random", 3, 12));
  const auto whole = hashes_of_pass(cached, {.image_size_px = 16});
  EXPECT_LE(cached.statistics().disk_bytes, 11 * 2 * kMebibyte);
  for (const std::int64_t first : {1, 17, 31, 32}) {
    EXPECT_EQ(hashes_of_pass(cached, {.first_batch = first, .image_size_px = 16}),
              std::vector<unsigned long>(whole.begin() + first, whole.end()));
  }
}

TEST_F(LoaderOnDiskTest, RanksTogetherVisitEverySampleOnceInEveryOrder) {
  const BetonReader on_disk(*folder_ / "x.beton", BlobAccess::on_disk);
  for (const std::string order : {"sequential", "random", "quasi_random"}) {
    for (const int world : {1, 2, 3, 8}) {
      std::multiset<std::uint64_t> seen;
      for (int rank = 0; rank < world; ++rank) {
        Loader part(on_disk, standard_train_pipeline(), options(on_disk, order));
        part.begin_epoch({.image_size_px = 4, .rank = rank, .world = world});
        while (const auto batch = part.next())
          seen.insert(batch->sample_ids.begin(), batch->sample_ids.end());
      }
      EXPECT_EQ(seen.size(), 500U) << order << ", " << world << " ranks";
      EXPECT_EQ(std::set<std::uint64_t>(seen.begin(), seen.end()).size(), 500U);
    }
  }
}

TEST_F(LoaderOnDiskTest, AFileCutOffWhileItIsReadIsAnErrorWithItsPlace) {
  std::filesystem::copy_file(*folder_ / "x.beton", *folder_ / "cut.beton");
  const BetonReader on_disk(*folder_ / "cut.beton", BlobAccess::on_disk);
  Loader cached(on_disk, standard_val_pipeline(), options(on_disk, "sequential", 2, 4));
  cached.begin_epoch({.image_size_px = 16});
  EXPECT_TRUE(cached.next());
  ASSERT_EQ(::truncate((*folder_ / "cut.beton").c_str(), 100), 0);
  try {
    while (cached.next()) {
    }
    FAIL() << "expected an error, because page 10 cannot be read";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), Names(*folder_ / "cut.beton"));
  }
  EXPECT_FALSE(cached.next());
}

TEST_F(LoaderOnDiskTest, BudgetsBelowOneReadAreRefusedAtTheStartOfAPass) {
  const BetonReader on_disk(*folder_ / "x.beton", BlobAccess::on_disk);
  LoaderOptions none = options(on_disk, "quasi_random");
  none.cache_bytes = 1000;
  Loader loader(on_disk, standard_train_pipeline(), none);
  EXPECT_THROW(loader.begin_epoch({.image_size_px = 16}), ConfigError);
  EXPECT_FALSE(loader.next());
}

/// Copies a small file, and moves its pages and its allocation table to a large offset, with a hole
/// before them.
void spread(const std::filesystem::path& from, const std::filesystem::path& to,
            std::uint64_t distance) {
  std::vector<std::byte> bytes = test::read_bytes(from);
  const BetonReader reader(from);
  const BetonHeader& header = reader.header();
  const std::uint64_t first_page = reader.blob_offset(0, 0) / header.page_bytes * header.page_bytes;
  for (std::uint64_t i = 0; i < reader.size(); ++i) {
    const std::size_t record = kHeaderBytes + 3 * kFieldBytes + i * 32;
    store(bytes.data() + record + kImagePointerAt, reader.blob_offset(i, 0) + distance);
  }
  for (std::size_t at = header.table_offset; at < bytes.size(); at += kAllocationBytes)
    store(bytes.data() + at + 8, load<std::uint64_t>(bytes.data() + at + 8) + distance);
  store(bytes.data() + 16, header.table_offset + distance);
  const int fd = ::open(to.c_str(), O_WRONLY | O_CREAT, 0600);
  const auto end = static_cast<std::int64_t>(bytes.size() + distance);
  const bool written =
      ::ftruncate(fd, end) == 0 &&
      ::pwrite(fd, bytes.data(), first_page, 0) == static_cast<std::ptrdiff_t>(first_page) &&
      ::pwrite(fd, bytes.data() + first_page, bytes.size() - first_page,
               static_cast<std::int64_t>(first_page + distance)) ==
          static_cast<std::ptrdiff_t>(bytes.size() - first_page);
  ::close(fd);
  if (!written) std::filesystem::remove(to);
}

TEST_F(LoaderOnDiskTest, ASparseFileOfATebibyteOpensAndReadsAtOnce) {
  test::write_made_beton(*folder_ / "few.beton",
                         {.samples = 30, .width = 50, .height = 50, .checksums = false});
  spread(*folder_ / "few.beton", *folder_ / "sparse.beton", std::uint64_t{1} << 40);
  if (!std::filesystem::exists(*folder_ / "sparse.beton"))
    GTEST_SKIP() << "this file system does not allow files of this size";
  const BetonReader few(*folder_ / "few.beton");
  Loader reference(few, standard_train_pipeline(), options(few, "quasi_random"));
  const auto expected = hashes_of_pass(reference, {.image_size_px = 16});

  const BetonReader sparse(*folder_ / "sparse.beton", BlobAccess::on_disk);
  EXPECT_GT(sparse.file_bytes(), std::uint64_t{1} << 40);
  EXPECT_LT(sparse.memory_bytes(), 100'000U);
  Loader cached(sparse, standard_train_pipeline(), options(sparse, "quasi_random"));
  EXPECT_EQ(hashes_of_pass(cached, {.image_size_px = 16}), expected);
  EXPECT_LE(cached.statistics().disk_bytes, 2 * kMebibyte);
  EXPECT_LE(
      plan_memory(sparse, standard_train_pipeline(), options(sparse, "quasi_random"), 16).own(),
      40 * kMebibyte);
}

TEST_F(LoaderOnDiskTest, ThePlanOfMemoryNamesWhatIsMappedAndWhatIsOwn) {
  const BetonReader mapped(*folder_ / "x.beton");
  const MemoryPlan shared =
      plan_memory(mapped, standard_train_pipeline(), options(mapped, "random"), 16);
  EXPECT_EQ(shared.mapped, mapped.file_bytes());
  EXPECT_EQ(shared.cache, 0U);
  EXPECT_GE(shared.batches, 4 * 16 * (16 * 16 * 3 + 8 + 8U));
  EXPECT_EQ(shared.order, 3 * 500 * 8U);
  const BetonReader on_disk(*folder_ / "x.beton", BlobAccess::on_disk);
  const MemoryPlan own =
      plan_memory(on_disk, standard_train_pipeline(), options(on_disk, "random"), 16);
  EXPECT_EQ(own.mapped, 0U);
  EXPECT_EQ(own.cache, 16 * kMebibyte);
  EXPECT_GT(own.metadata, 500 * 32U);
  EXPECT_EQ(own.own(), own.cache + own.batches + own.decoders + own.metadata + own.order);
  EXPECT_THAT(own.text(), AllOf(Names("cached pages 16 MiB"), Not(Names("mapped"))));
  EXPECT_THAT(shared.text(), AllOf(Names("mapped"), Not(Names("cached pages"))));
}

TEST_F(LoaderOnDiskTest, AMappedFileCanBeLoadedBeforeTheStart) {
  const BetonReader mapped(*folder_ / "x.beton");
  preload(mapped);
  EXPECT_EQ(mapped.size(), 500U);
}

TEST_F(LoaderOnDiskTest, StatisticsCountSamplesBytesAndTime) {
  const BetonReader on_disk(*folder_ / "x.beton", BlobAccess::on_disk);
  Loader cached(on_disk, standard_train_pipeline(), options(on_disk, "quasi_random", 2));
  static_cast<void>(hashes_of_pass(cached, {.image_size_px = 16}));
  cached.begin_epoch({.epoch = 1, .image_size_px = 16});  // waits for the workers of the first pass
  const LoaderStatistics all = cached.statistics();
  EXPECT_GE(all.samples, 500);
  EXPECT_GE(all.stored_bytes, 500 * 120 * 120 * 3U);
  EXPECT_GE(all.disk_bytes, 500 * 120 * 120 * 3U);
  ASSERT_EQ(all.workers.size(), 2U);
  double busy = 0;
  double cpu = 0;
  for (const WorkerStatistics& worker : all.workers) {
    busy += worker.busy;
    cpu += worker.cpu;
    EXPECT_GE(worker.waiting, 0);
  }
  EXPECT_GT(busy, 0);
  EXPECT_GT(cpu, 0);
}

}  // namespace
}  // namespace precast::data
