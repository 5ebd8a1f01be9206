#include "data/loader/loader.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <thread>
#include <utility>

#include "data/beton/reader.h"
#include "framework/core/error.h"
#include "framework/core/system.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/few_threads.h"
#include "tests/support/message_matchers.h"
#include "tests/support/other_threads.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;

constexpr std::int64_t kSizePx = 24;

/// A dataset that FFCV wrote: 26 JPEG photographs with labels.
class LoaderTest : public ::testing::Test {
 protected:
  LoaderTest() { open("img_jpg_w3"); }

  void open(const std::string& golden) {
    test::write_bytes(folder_ / "x.beton", test::golden_beton(golden));
    reader_.emplace(folder_ / "x.beton");
  }

  [[nodiscard]] LoaderOptions options(int workers, const std::string& order = "random") const {
    LoaderOptions options;
    options.batch_size = 4;
    options.workers = workers;
    options.order = make_order(*reader_, {.name = order});
    options.seed = 11;
    return options;
  }

  std::vector<HostBatch> all_batches(const LoaderOptions& options,
                                     const EpochRequest& request) const {
    Loader loader(*reader_, standard_train_pipeline(), options);
    loader.begin_epoch(request);
    std::vector<HostBatch> batches;
    while (auto batch = loader.next()) batches.push_back(std::move(*batch));
    return batches;
  }

  static unsigned long hash(const HostBatch& batch) {
    unsigned long crc = 0;
    const auto add = [&](const void* data, std::size_t bytes) {
      crc = ::crc32(crc, static_cast<const Bytef*>(data), static_cast<uInt>(bytes));
    };
    for (const HostTensor& field : batch.fields) add(field.data, field.bytes());
    add(batch.sample_ids.data(), batch.sample_ids.size() * sizeof(std::uint64_t));
    return crc;
  }

  static std::vector<unsigned long> hashes(const std::vector<HostBatch>& batches) {
    std::vector<unsigned long> all;
    for (const HostBatch& batch : batches) all.push_back(hash(batch));
    return all;
  }

  static std::vector<std::uint64_t> ids(const std::vector<HostBatch>& batches) {
    std::vector<std::uint64_t> all;
    for (const HostBatch& batch : batches)
      all.insert(all.end(), batch.sample_ids.begin(), batch.sample_ids.end());
    return all;
  }

  test::TemporaryFolder folder_;
  std::optional<BetonReader> reader_;
};

TEST(LoaderThreadsTest, AreTheRanksShareOfTheCoresLessTwoWithAGpu) {
  EXPECT_EQ(loader_threads(/*usable_cores=*/2, /*local_ranks=*/1, /*gpu_host=*/false), 2);
  EXPECT_EQ(loader_threads(16, 1, false), 16);
  EXPECT_EQ(loader_threads(16, 1, true), 14);
  EXPECT_EQ(loader_threads(90, 8, false), 11);
  EXPECT_EQ(loader_threads(90, 8, true), 9);
  EXPECT_EQ(loader_threads(8, 4, true), 1);
  EXPECT_EQ(loader_threads(1, 1, true), 1);
  EXPECT_EQ(loader_threads(2, 8, false), 1);
}

TEST_F(LoaderTest, BatchesDoNotDependOnWorkersNorOnTheRing) {
  for (const std::string order : {"sequential", "random", "quasi_random"}) {
    const auto expected =
        hashes(all_batches(options(1, order), {.epoch = 2, .image_size_px = kSizePx}));
    ASSERT_EQ(expected.size(), 7U);
    for (const int workers : {2, 3, 8, 16}) {
      for (const int ahead : {1, 2, 8}) {
        LoaderOptions many = options(workers, order);
        many.batches_ahead = ahead;
        EXPECT_EQ(hashes(all_batches(many, {.epoch = 2, .image_size_px = kSizePx})), expected)
            << workers << " workers, " << ahead << " ahead";
      }
    }
  }
}

/// If the prepared batches exceed the CPU's cache, images are written with non-temporal stores.
TEST_F(LoaderTest, FloatsAreTheSameWhenTheRingExceedsTheCache) {
  constexpr std::int64_t kSide = 96;
  LoaderOptions small = options(1);
  small.normalize = true;
  small.batches_ahead = 1;
  const auto expected = hashes(all_batches(small, {.epoch = 2, .image_size_px = kSide}));
  const std::int64_t batch_bytes = small.batch_size * kSide * kSide * 12;
  for (const int workers : {1, 2, 8}) {
    LoaderOptions large = options(workers);
    large.normalize = true;
    large.batches_ahead =
        static_cast<int>(static_cast<std::int64_t>(last_level_cache_bytes()) / batch_bytes) + 1;
    EXPECT_EQ(hashes(all_batches(large, {.epoch = 2, .image_size_px = kSide})), expected);
  }
}

TEST_F(LoaderTest, SeedAndEpochChangeTheImagesAndNotOnlyTheOrder) {
  LoaderOptions sequential = options(2, "sequential");
  const auto first = hashes(all_batches(sequential, {.epoch = 0, .image_size_px = kSizePx}));
  const auto next_epoch = hashes(all_batches(sequential, {.epoch = 1, .image_size_px = kSizePx}));
  sequential.seed = 12;
  const auto next_seed = hashes(all_batches(sequential, {.epoch = 0, .image_size_px = kSizePx}));
  for (std::size_t b = 0; b < first.size(); ++b) {
    EXPECT_NE(first[b], next_epoch[b]);
    EXPECT_NE(first[b], next_seed[b]);
  }
}

TEST_F(LoaderTest, BatchesKeepTheirContentWhenTheConsumerKeepsThemAll) {
  Loader loader(*reader_, standard_train_pipeline(), options(3));
  loader.begin_epoch({.image_size_px = kSizePx});
  std::vector<HostBatch> kept;
  std::vector<unsigned long> when_delivered;
  while (auto batch = loader.next()) {
    when_delivered.push_back(hash(*batch));
    kept.push_back(std::move(*batch));
  }
  loader.begin_epoch({.epoch = 1, .image_size_px = kSizePx});
  while (loader.next()) {
  }
  EXPECT_EQ(hashes(kept), when_delivered);
}

TEST_F(LoaderTest, BatchesOutliveTheirLoader) {
  std::optional<HostBatch> batch;
  unsigned long before = 0;
  {
    Loader loader(*reader_, standard_train_pipeline(), options(2));
    loader.begin_epoch({.image_size_px = kSizePx});
    batch = loader.next();
    before = hash(*batch);
  }
  EXPECT_EQ(hash(*batch), before);
}

TEST_F(LoaderTest, LastBatchIsPartialOrDropped) {
  LoaderOptions keep = options(2);
  const auto kept = all_batches(keep, {.image_size_px = kSizePx});
  EXPECT_EQ(kept.back().sample_ids.size(), 2U);
  EXPECT_EQ(kept.back().fields[0].shape, (std::vector<std::int64_t>{2, kSizePx, kSizePx, 3}));
  const auto seen = ids(kept);
  EXPECT_EQ(std::set<std::uint64_t>(seen.begin(), seen.end()).size(), 26U);
  LoaderOptions drop = options(2);
  drop.drop_last = true;
  EXPECT_EQ(all_batches(drop, {.image_size_px = kSizePx}).size(), 6U);
  drop.batch_size = 27;
  EXPECT_TRUE(all_batches(drop, {.image_size_px = kSizePx}).empty());
}

TEST_F(LoaderTest, PassStartsBehindTheBatchesAlreadyConsumed) {
  const auto whole = hashes(all_batches(options(2), {.epoch = 5, .image_size_px = kSizePx}));
  for (std::int64_t first = 0; first <= 7; ++first) {
    const auto rest = hashes(
        all_batches(options(3), {.epoch = 5, .first_batch = first, .image_size_px = kSizePx}));
    EXPECT_EQ(rest, std::vector<unsigned long>(whole.begin() + first, whole.end()))
        << "from batch " << first;
  }
}

TEST_F(LoaderTest, RanksShareTheGlobalOrderExactly) {
  const auto global = ids(all_batches(options(1), {.epoch = 1, .image_size_px = kSizePx}));
  for (const int world : {2, 3, 8, 30}) {
    std::size_t total = 0;
    for (int rank = 0; rank < world; ++rank) {
      const auto mine = ids(all_batches(
          options(2), {.epoch = 1, .image_size_px = kSizePx, .rank = rank, .world = world}));
      for (std::size_t k = 0; k < mine.size(); ++k) {
        EXPECT_EQ(mine[k],
                  global[k * static_cast<std::size_t>(world) + static_cast<std::size_t>(rank)]);
      }
      total += mine.size();
    }
    EXPECT_EQ(total, global.size())
        << world << " ranks: expected no padding, and no sample left out";
  }
}

TEST_F(LoaderTest, DroppingTheLastBatchGivesAllRanksTheSameSteps) {
  LoaderOptions drop = options(1);
  drop.drop_last = true;
  const Loader loader(*reader_, standard_train_pipeline(), drop);
  for (const int world : {1, 2, 3, 7}) {
    for (int rank = 0; rank < world; ++rank) EXPECT_EQ(loader.batches(world, rank), 26 / world / 4);
  }
}

TEST_F(LoaderTest, LabelsAreThoseOfTheSamples) {
  const auto batches = all_batches(options(3), {.image_size_px = kSizePx});
  for (const HostBatch& batch : batches) {
    const auto labels = batch.fields[1].values<std::int64_t>();
    for (std::size_t i = 0; i < labels.size(); ++i)
      EXPECT_EQ(labels[i], reader_->integer(batch.sample_ids[i], 1));
  }
}

TEST_F(LoaderTest, NormalizedBatchesAreTheTableOfTheBytes) {
  LoaderOptions floats = options(2);
  floats.normalize = true;
  const auto bytes = all_batches(options(2), {.image_size_px = kSizePx});
  const auto normalized = all_batches(floats, {.image_size_px = kSizePx});
  ASSERT_EQ(normalized[3].fields[0].type, ElementType::f32);
  const auto expected = bytes[3].fields[0].values<std::uint8_t>();
  const auto found = normalized[3].fields[0].values<float>();
  const NormalizeOptions standard;
  for (std::size_t v = 0; v < expected.size(); ++v) {
    const auto mean = static_cast<float>(standard.mean[v % 3]);
    const auto std = static_cast<float>(standard.std[v % 3]);
    ASSERT_EQ(found[v], (static_cast<float>(expected[v]) - mean) / std);
  }
}

TEST_F(LoaderTest, ImageSizeMayChangeBetweenPasses) {
  Loader loader(*reader_, standard_train_pipeline(), options(2));
  for (const std::int64_t size : {24, 40, 16}) {
    loader.begin_epoch({.image_size_px = size});
    int batches = 0;
    while (auto batch = loader.next()) {
      EXPECT_EQ(batch->fields[0].shape[1], size);
      ++batches;
    }
    EXPECT_EQ(batches, 7);
  }
}

TEST_F(LoaderTest, ADamagedSampleReachesTheConsumerWithFileAndSample) {
  std::vector<std::byte> bytes = test::golden_beton("img_jpg_w3");
  const std::uint64_t offset = reader_->blob_offset(17, 0);
  bytes[offset] = std::byte{0};  // no longer a JPEG
  test::write_bytes(folder_ / "bad.beton", bytes);
  const BetonReader bad(folder_ / "bad.beton");
  for (const int workers : {1, 3}) {
    Loader loader(bad, standard_val_pipeline(), options(workers, "sequential"));
    loader.begin_epoch({.image_size_px = kSizePx});
    for (int batch = 0; batch < 4; ++batch) EXPECT_TRUE(loader.next());
    try {
      static_cast<void>(loader.next());
      FAIL() << "expected an error, because batch 4 contains the damaged sample 17";
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), Names(folder_ / "bad.beton", "sample 17", "'image'", "JPEG"));
    }
    EXPECT_FALSE(loader.next()) << "an error ends the pass";
    loader.begin_epoch({.image_size_px = kSizePx});
    EXPECT_TRUE(loader.next()) << "the loader can begin another pass after an error";
  }
}

/// A pipeline that reads only the label, and calls `on_read` with each sample.
Pipeline labels_read_by(std::function<void(std::uint64_t)> on_read) {
  class Reads final : public LabelTransform {
   public:
    explicit Reads(std::function<void(std::uint64_t)> on_read) : on_read_(std::move(on_read)) {}
    [[nodiscard]] std::int64_t apply(std::int64_t label, std::uint64_t sample) const override {
      on_read_(sample);
      return label;
    }

   private:
    std::function<void(std::uint64_t)> on_read_;
  };
  Pipeline pipeline = standard_train_pipeline();
  pipeline.outputs = {
      {.name = "label", .field = "label", .labels = {std::make_shared<Reads>(std::move(on_read))}}};
  return pipeline;
}

TEST_F(LoaderTest, AfterAFailedReadOnlyEarlierSamplesOfTheBatchAreRead) {
  constexpr std::uint64_t kFirstBad = 3;
  for (const int workers : {1, 4}) {
    std::atomic<int> reads{0};
    const Pipeline pipeline = labels_read_by([&](std::uint64_t sample) {
      ++reads;
      if (sample < kFirstBad) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      throw IoError(fmt::format("sample {} cannot be read", sample));
    });
    LoaderOptions one_batch = options(workers, "sequential");
    one_batch.batch_size = 32;
    Loader loader(*reader_, pipeline, one_batch);
    loader.begin_epoch({.image_size_px = kSizePx});
    EXPECT_THAT([&] { (void)loader.next(); }, testing::ThrowsMessage<IoError>(Names("sample 3")));
    EXPECT_LE(reads.load(), static_cast<int>(kFirstBad) + workers) << workers;
  }
}

TEST_F(LoaderTest, TheEarliestSampleIsNamedEvenIfItFailsLast) {
  const Pipeline pipeline = labels_read_by([](std::uint64_t sample) {
    if (sample != 5 && sample != 20) return;
    if (sample == 5) test::wait_until_other_threads_sleep();
    throw IoError(fmt::format("sample {} cannot be read", sample));
  });
  LoaderOptions one_batch = options(4, "sequential");
  one_batch.batch_size = 32;
  Loader loader(*reader_, pipeline, one_batch);
  loader.begin_epoch({.image_size_px = kSizePx});
  EXPECT_THAT([&] { (void)loader.next(); }, testing::ThrowsMessage<IoError>(Names("sample 5")));
}

TEST_F(LoaderTest, ARequestToStopEndsTheWaitForABatchAndLosesNone) {
  std::atomic<bool> readable{false};
  std::atomic<bool> stopped{true};
  const Pipeline pipeline = labels_read_by([&](std::uint64_t /*sample*/) { readable.wait(false); });
  LoaderOptions stoppable = options(2, "sequential");
  stoppable.stopped = [&] { return stopped.load(); };
  Loader loader(*reader_, pipeline, stoppable);
  loader.begin_epoch({.image_size_px = kSizePx});
  EXPECT_FALSE(loader.next());
  stopped = false;
  readable = true;
  readable.notify_all();
  std::vector<HostBatch> batches;
  while (auto batch = loader.next()) batches.push_back(std::move(*batch));
  EXPECT_EQ(ids(batches).size(), reader_->size());
  EXPECT_EQ(ids(batches).front(), 0U);
}

TEST_F(LoaderTest, StopsCleanlyInTheMiddleOfAPass) {
  for (int cycle = 0; cycle < 200; ++cycle) {
    Loader loader(*reader_, standard_train_pipeline(), options(1 + cycle % 4));
    loader.begin_epoch({.epoch = cycle, .image_size_px = 8});
    for (int batch = 0; batch < cycle % 4; ++batch) EXPECT_TRUE(loader.next());
    if (cycle % 3 == 0) loader.begin_epoch({.epoch = cycle + 1, .image_size_px = 8});
  }
}

TEST_F(LoaderTest, ASlowConsumerGetsTheSameBatches) {
  const auto expected = hashes(all_batches(options(1), {.image_size_px = kSizePx}));
  Loader loader(*reader_, standard_train_pipeline(), options(4));
  loader.begin_epoch({.image_size_px = kSizePx});
  std::vector<unsigned long> found;
  while (auto batch = loader.next()) {
    test::wait_until_other_threads_sleep();  // until the workers wait for free batches
    found.push_back(hash(*batch));
  }
  EXPECT_EQ(found, expected);
}

TEST_F(LoaderTest, FilesOfNumbersAloneLoadToo) {
  open("scalars_only");
  const auto batches = all_batches(options(2, "sequential"), {.image_size_px = kSizePx});
  ASSERT_EQ(ids(batches).size(), 50U);
  EXPECT_EQ(batches[0].fields[0].type, ElementType::i64);
  EXPECT_EQ(batches[0].fields[1].type, ElementType::f64);
  EXPECT_EQ(batches[2].fields[1].values<double>()[1], reader_->floating(9, 1));
}

TEST_F(LoaderTest, FieldsThatAreNotNumbersOrImagesAreLeftOut) {
  open("wds_w2");
  const auto batches = all_batches(options(2), {.image_size_px = kSizePx});
  ASSERT_EQ(batches[0].fields.size(), 2U);
  EXPECT_EQ(batches[0].fields[1].name, "label");
}

TEST_F(LoaderTest, AThreadThatCannotBeStartedIsAnErrorAndNoHang) {
  if (!test::kAddressesCanBeLimited)
    GTEST_SKIP() << "the address space cannot be limited under sanitizers";
  const std::string message = test::device_error_of_few_threads([this] {
    Loader loader(*reader_, standard_train_pipeline(), options(test::kTooManyThreads));
    loader.begin_epoch({.image_size_px = kSizePx});
  });
  EXPECT_THAT(message, Names("loader", test::kTooManyThreads, std::strerror(EAGAIN)));
}

TEST_F(LoaderTest, OptionsOutOfRangeAreRefused) {
  LoaderOptions wrong = options(0);
  EXPECT_THROW(Loader(*reader_, standard_train_pipeline(), wrong), ConfigError);
  wrong = options(1);
  wrong.batch_size = 0;
  EXPECT_THROW(Loader(*reader_, standard_train_pipeline(), wrong), ConfigError);
}

}  // namespace
}  // namespace precast::data
