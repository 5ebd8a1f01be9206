#include "data/torch/device_prefetcher.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "data/beton/reader.h"
#include "data/loader/loader.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/numbered_source.h"
#include "tests/data/queued_device.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Fault;
using test::HostMemory;
using test::kBatches;
using test::kBatchSize;
using test::NumberedSource;
using test::Pace;
using test::QueuedDevice;
using test::value_of;

constexpr std::size_t kDepth = 2;
constexpr std::size_t kMaxInUse = 4;

/// The interface that DevicePrefetcher needs, implemented with a QueuedDevice. A kernel inverts the
/// bits of the first field.
class QueuedCopies {
 public:
  using Event = QueuedDevice::Event;
  struct Batch {
    std::vector<QueuedDevice::Memory> fields;
    std::vector<std::uint64_t> sample_ids;
  };

  explicit QueuedCopies(QueuedDevice& device) : device_(&device) {}

  Batch copy(const HostBatch& host) {
    Batch batch{.fields = {}, .sample_ids = host.sample_ids};
    for (const HostTensor& field : host.fields) {
      const QueuedDevice::Memory bytes = device_->copy(field.data, field.bytes());
      batch.fields.push_back(batch.fields.empty() ? device_->invert(bytes) : bytes);
    }
    return batch;
  }
  [[nodiscard]] Event record() const { return device_->record(QueuedDevice::kCopies); }
  [[nodiscard]] bool query(const Event& event) { return device_->query(event); }
  /// One second for each piece of work.
  [[nodiscard]] double seconds(const Event& from, const Event& to) const {
    return static_cast<double>(to.position - from.position);
  }
  void block_consumer(const Event& event) { device_->block(QueuedDevice::kConsumer, event); }
  void record_stream(const Batch& batch) {
    for (const QueuedDevice::Memory& memory : batch.fields) device_->record_stream(*memory);
  }
  void synchronize() { device_->synchronize(QueuedDevice::kCopies); }
  [[nodiscard]] Event record_consumer() const { return device_->record(QueuedDevice::kConsumer); }
  void wait(const Event& event) { device_->wait(event); }

 private:
  QueuedDevice* device_;
};

/// A consumer on its own stream, and the values that it has read.
class Consumer {
 public:
  explicit Consumer(QueuedDevice& device) : device_(&device) {}

  /// Queues a kernel that reads `batch`, which the caller may release after the call.
  void read(const QueuedCopies::Batch& batch) {
    for (std::size_t f = 0; f < batch.fields.size(); ++f) {
      Read& read = reads_.emplace_back(Read{batch.sample_ids, f, {}});
      device_->queue(QueuedDevice::kConsumer,
                     [&read, from = batch.fields[f].get()] { read.bytes = from->bytes; });
    }
  }
  /// The number of values that were read but differ from those of their samples.
  [[nodiscard]] std::size_t wrong_values() const {
    std::size_t wrong = 0;
    for (const Read& read : reads_) {
      const std::size_t row = read.bytes.size() / read.samples.size();
      if (row == 0) ++wrong;
      for (std::size_t i = 0; i < read.bytes.size(); ++i) {
        const std::byte stored = value_of(read.samples[i / row], read.field, i % row);
        if (read.bytes[i] != (read.field == 0 ? ~stored : stored)) ++wrong;
      }
    }
    return wrong;
  }
  /// The samples in the order in which they were read.
  [[nodiscard]] std::vector<std::uint64_t> samples() const {
    std::vector<std::uint64_t> all;
    for (const Read& read : reads_)
      if (read.field == 0) all.insert(all.end(), read.samples.begin(), read.samples.end());
    return all;
  }

 private:
  struct Read {
    std::vector<std::uint64_t> samples;
    std::size_t field;
    std::vector<std::byte> bytes;
  };
  QueuedDevice* device_;
  std::deque<Read> reads_;
};

/// A prefetcher with its device, its source and its consumer.
struct Rig {
  using Prefetcher = DevicePrefetcher<QueuedCopies, NumberedSource>;

  explicit Rig(const QueuedDevice::Options& options, std::int64_t bad = -1)
      : device(options), consumer(device) {
    batches = std::make_unique<Prefetcher>(QueuedCopies(device), kDepth, kMaxInUse, memory, bad,
                                           options.seed);
  }

  /// Takes `count` batches, or fewer if the pass ends before. Reads each batch after `lag` more
  /// batches have been taken.
  void take(std::int64_t count, std::size_t lag = 0) {
    std::deque<QueuedCopies::Batch> kept;
    const auto read_first = [&] {
      consumer.read(kept.front());
      kept.pop_front();
    };
    for (; count > 0; --count) {
      auto batch = batches->next();
      if (!batch) break;
      kept.push_back(std::move(*batch));
      if (kept.size() > lag) read_first();
    }
    while (!kept.empty()) read_first();
  }
  /// Runs the remaining work. @return the number of wrong values among all that were read.
  std::size_t wrong_values() {
    device.finish();
    return consumer.wrong_values();
  }

  QueuedDevice device;
  HostMemory memory;
  Consumer consumer;
  std::unique_ptr<Prefetcher> batches;
};

std::vector<std::uint64_t> samples_of(std::int64_t epoch, std::int64_t batches) {
  std::vector<std::uint64_t> samples;
  for (std::int64_t i = 0; i < batches * kBatchSize; ++i)
    samples.push_back(static_cast<std::uint64_t>(epoch * 1000 + i));
  return samples;
}

std::vector<std::uint64_t> operator+(std::vector<std::uint64_t> a,
                                     const std::vector<std::uint64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Runs the body with given paces of the two streams: 40 times if a pace is random, otherwise once.
class DevicePrefetcherTest : public ::testing::TestWithParam<std::tuple<Pace, Pace>> {
 protected:
  template <typename Body>
  void for_each_device(const Body& body) {
    const auto [copies, consumer] = GetParam();
    const bool random = copies == Pace::random || consumer == Pace::random;
    for (unsigned seed = 1; seed <= (random ? 40U : 1U); ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      body(QueuedDevice::Options{.copies = copies, .consumer = consumer, .seed = seed});
    }
  }
};

TEST_P(DevicePrefetcherTest, EveryValueArrivesWithoutASynchronizationWithinAPass) {
  for_each_device([](const QueuedDevice::Options& options) {
    for (const std::size_t lag : {0, 1, 4, 100}) {
      Rig rig(options);
      std::vector<std::uint64_t> expected;
      for (const std::int64_t epoch : {0, 1, 2}) {
        // The size changes, as in progressive resizing, and then changes back.
        rig.batches->begin_epoch({.epoch = epoch, .image_size_px = epoch == 1 ? 5 : 4});
        // The work of a batch: three allocations, two copies and a kernel.
        EXPECT_EQ(rig.batches->seconds_copying(), 6.0 * static_cast<double>(epoch * kBatches));
        const int before = rig.device.synchronizations();
        rig.take(kBatches + 1, lag);
        EXPECT_EQ(rig.device.synchronizations(), before);
        EXPECT_FALSE(rig.batches->next());
        expected = expected + samples_of(epoch, kBatches);
      }
      EXPECT_EQ(rig.wrong_values(), 0U) << "lag " << lag;
      EXPECT_EQ(rig.consumer.samples(), expected);
      EXPECT_EQ(rig.device.changed_sources(), 0);
    }
  });
}

/// Batches of a ring with 2 slots. next() throws while both slots are in use, whereas a real ring
/// would wait forever.
class RingSource {
 public:
  RingSource(HostMemory& memory, int& kept) : batches_(memory, /*bad=*/-1, 1), kept_(&kept) {}

  void begin_epoch(const EpochRequest& request) { batches_.begin_epoch(request); }
  std::optional<HostBatch> next() {
    require(ready(), "a slot is free");
    std::optional<HostBatch> batch = batches_.next();
    if (!batch) return batch;
    ++*kept_;
    const void* const at = batch->memory.get();
    batch->memory = std::shared_ptr<const void>(
        at, [kept = kept_, memory = std::move(batch->memory)](const void*) { --*kept; });
    return batch;
  }
  [[nodiscard]] bool ready() const { return *kept_ < 2; }
  [[nodiscard]] bool on_ring() const { return true; }

 private:
  NumberedSource batches_;
  int* kept_;
};

TEST_P(DevicePrefetcherTest, ARingWithFewSlotsGetsThemBack) {
  for_each_device([](const QueuedDevice::Options& options) {
    QueuedDevice device(options);
    HostMemory memory;
    Consumer consumer(device);
    int kept = 0;
    DevicePrefetcher<QueuedCopies, RingSource> batches(QueuedCopies(device), kDepth, kMaxInUse,
                                                       memory, kept);
    for (const std::int64_t epoch : {0, 1}) {
      batches.begin_epoch({.epoch = epoch, .image_size_px = 4});
      while (const auto batch = batches.next()) consumer.read(*batch);
    }
    device.finish();
    EXPECT_EQ(consumer.wrong_values(), 0U);
    EXPECT_EQ(consumer.samples(), samples_of(0, kBatches) + samples_of(1, kBatches));
    EXPECT_EQ(device.changed_sources(), 0);
  });
}

TEST_P(DevicePrefetcherTest, ARestartWithCopiesUnderWayHarmsNoBatch) {
  for_each_device([](const QueuedDevice::Options& options) {
    for (std::int64_t taken = 0; taken < kBatches; ++taken) {
      Rig rig(options);
      rig.batches->begin_epoch({.epoch = 0, .image_size_px = 4});
      std::vector<QueuedCopies::Batch> kept;
      for (std::int64_t b = 0; b < taken; ++b) kept.push_back(rig.batches->next().value());
      rig.batches->begin_epoch({.epoch = 1, .image_size_px = 4});
      rig.take(kBatches);
      for (const QueuedCopies::Batch& batch : kept) rig.consumer.read(batch);
      kept.clear();
      EXPECT_EQ(rig.wrong_values(), 0U) << taken << " taken";
      EXPECT_EQ(rig.consumer.samples(), samples_of(1, kBatches) + samples_of(0, taken));
      EXPECT_EQ(rig.device.changed_sources(), 0);
    }
  });
}

TEST_P(DevicePrefetcherTest, BatchesOutliveTheirPrefetcher) {
  for_each_device([](const QueuedDevice::Options& options) {
    Rig rig(options);
    rig.batches->begin_epoch({.epoch = 0, .image_size_px = 4});
    std::vector<QueuedCopies::Batch> kept;
    for (int b = 0; b < 3; ++b) kept.push_back(rig.batches->next().value());
    rig.batches.reset();
    for (const QueuedCopies::Batch& batch : kept) rig.consumer.read(batch);
    EXPECT_EQ(rig.wrong_values(), 0U);
    EXPECT_EQ(rig.consumer.samples(), samples_of(0, 3));
    EXPECT_EQ(rig.device.changed_sources(), 0);
  });
}

TEST_P(DevicePrefetcherTest, AFailureOfTheSourceComesBehindTheBatchesBeforeIt) {
  for_each_device([](const QueuedDevice::Options& options) {
    for (std::int64_t bad = 0; bad < kBatches; ++bad) {
      Rig rig(options, bad);
      std::vector<std::uint64_t> expected;
      for (const std::int64_t epoch : {0, 1}) {
        rig.batches->begin_epoch({.epoch = epoch, .image_size_px = 4});
        rig.take(bad);
        EXPECT_THROW(static_cast<void>(rig.batches->next()), DataError);
        EXPECT_FALSE(rig.batches->next());
        expected = expected + samples_of(epoch, bad);
      }
      EXPECT_EQ(rig.wrong_values(), 0U) << "bad batch " << bad;
      EXPECT_EQ(rig.consumer.samples(), expected);
      EXPECT_EQ(rig.device.changed_sources(), 0);
    }
  });
}

TEST_P(DevicePrefetcherTest, AFailedCopyComesBehindTheBatchesBeforeItAndKeepsItsHostMemory) {
  for_each_device([](const QueuedDevice::Options& options) {
    // A batch needs three allocations: two for the first field, then one for the second.
    for (std::size_t allocations = 0; allocations < 9; ++allocations) {
      Rig rig(options);
      rig.batches->begin_epoch({.epoch = 0, .image_size_px = 4});
      rig.device.limit_allocations(allocations);
      const auto complete = static_cast<std::int64_t>(allocations / 3);
      rig.take(complete);
      EXPECT_THROW(static_cast<void>(rig.batches->next()), std::runtime_error);
      rig.device.limit_allocations(SIZE_MAX);
      EXPECT_FALSE(rig.batches->next());
      rig.batches->begin_epoch({.epoch = 1, .image_size_px = 4});
      rig.take(kBatches);
      EXPECT_EQ(rig.wrong_values(), 0U);
      EXPECT_EQ(rig.consumer.samples(), samples_of(0, complete) + samples_of(1, kBatches));
      EXPECT_EQ(rig.device.changed_sources(), 0) << allocations << " allocations";
    }
  });
}

/// The threads of a real loader reuse memory as soon as it is returned.
TEST_P(DevicePrefetcherTest, BatchesOfALoaderAreThoseItMakes) {
  const test::TemporaryFolder folder;
  test::write_bytes(folder / "x.beton", test::golden_beton("img_jpg_w3"));
  const BetonReader reader(folder / "x.beton");
  LoaderOptions loading;
  loading.batch_size = 3;
  loading.workers = 2;
  const Pipeline pipeline = standard_train_pipeline();
  const auto [copies, consumer] = GetParam();
  QueuedDevice device({.copies = copies, .consumer = consumer});
  DevicePrefetcher<QueuedCopies, Loader> batches(QueuedCopies(device), kDepth, kMaxInUse, reader,
                                                 pipeline, loading);
  Loader loader(reader, pipeline, loading);
  for (const std::int64_t epoch : {0, 1}) {
    const EpochRequest request{.epoch = epoch, .image_size_px = 16};
    batches.begin_epoch(request);
    std::vector<QueuedCopies::Batch> found;
    while (auto batch = batches.next()) found.push_back(std::move(*batch));
    device.finish();
    loader.begin_epoch(request);
    for (const QueuedCopies::Batch& batch : found) {
      const HostBatch expected = loader.next().value();
      EXPECT_EQ(batch.sample_ids, expected.sample_ids);
      ASSERT_EQ(batch.fields.size(), expected.fields.size());
      for (std::size_t f = 0; f < expected.fields.size(); ++f) {
        const auto values = expected.fields[f].values<std::byte>();
        std::vector<std::byte> bytes(values.begin(), values.end());
        if (f == 0) std::ranges::transform(bytes, bytes.begin(), [](std::byte b) { return ~b; });
        EXPECT_EQ(batch.fields[f]->bytes, bytes) << "field " << f;
      }
    }
    EXPECT_FALSE(loader.next());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Paces, DevicePrefetcherTest,
    ::testing::Combine(::testing::Values(Pace::eager, Pace::late, Pace::random),
                       ::testing::Values(Pace::eager, Pace::late, Pace::random)));

TEST(DevicePrefetcherMemoryTest, HostMemoryComesBackAsCopiesEnd) {
  for (const Pace consumer : {Pace::eager, Pace::late}) {
    Rig rig({.copies = Pace::eager, .consumer = consumer});
    for (const std::int64_t epoch : {0, 1, 2}) {
      rig.batches->begin_epoch({.epoch = epoch, .image_size_px = 4});
      rig.take(kBatches, /*lag=*/kBatches);
    }
    EXPECT_LE(rig.memory.buffers(), kDepth + 2);
  }
}

TEST(DevicePrefetcherMemoryTest, BatchesInUseAreLimitedIfTheHostIsFasterThanTheDevice) {
  Rig rig({.copies = Pace::eager, .consumer = Pace::late});
  for (const std::int64_t epoch : {0, 1, 2}) {
    rig.batches->begin_epoch({.epoch = epoch, .image_size_px = 4});
    rig.take(kBatches);
  }
  // next() waits for every batch except those that may be in use after its last call.
  EXPECT_EQ(rig.device.waits(), 3 * kBatches - static_cast<int>(kMaxInUse));
  constexpr std::size_t kBlocksOfBatch = 3;
  EXPECT_LE(rig.device.blocks(), kBlocksOfBatch * (kMaxInUse + kDepth + 1));
  EXPECT_EQ(rig.wrong_values(), 0U);
}

/// Negative controls: if a call to the device has no effect or returns a wrong answer, the consumer
/// reads wrong values.
class DevicePrefetcherFaultTest : public ::testing::Test {
 protected:
  /// Runs a pass, restarts in the middle of a second pass, and runs a third pass.
  static std::size_t wrong_values(Pace copies, Pace consumer, Fault fault) {
    Rig rig({.copies = copies, .consumer = consumer, .fault = fault});
    rig.batches->begin_epoch({.epoch = 0, .image_size_px = 4});
    rig.take(kBatches);
    rig.batches->begin_epoch({.epoch = 1, .image_size_px = 4});
    rig.take(2);
    rig.batches->begin_epoch({.epoch = 2, .image_size_px = 4});
    rig.take(kBatches);
    return rig.wrong_values();
  }
};

TEST_F(DevicePrefetcherFaultTest, HostMemoryReleasedBeforeItsCopyGivesWrongValues) {
  EXPECT_EQ(wrong_values(Pace::late, Pace::late, Fault::none), 0U);
  EXPECT_GT(wrong_values(Pace::late, Pace::late, Fault::query_lies), 0U);
}

TEST_F(DevicePrefetcherFaultTest, AConsumerThatDoesNotWaitReadsWrongValues) {
  EXPECT_EQ(wrong_values(Pace::late, Pace::eager, Fault::none), 0U);
  EXPECT_GT(wrong_values(Pace::late, Pace::eager, Fault::no_block_consumer), 0U);
}

TEST_F(DevicePrefetcherFaultTest, DeviceMemoryReusedBeforeTheConsumerIsDoneGivesWrongValues) {
  EXPECT_EQ(wrong_values(Pace::eager, Pace::late, Fault::none), 0U);
  EXPECT_GT(wrong_values(Pace::eager, Pace::late, Fault::no_record_stream), 0U);
}

TEST_F(DevicePrefetcherFaultTest, ARestartThatDoesNotWaitForCopiesGivesWrongValues) {
  EXPECT_GT(wrong_values(Pace::late, Pace::late, Fault::no_synchronize), 0U);
}

}  // namespace
}  // namespace precast::data
