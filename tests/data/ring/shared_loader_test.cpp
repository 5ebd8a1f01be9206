// Tests that a SharedLoader returns the same batches as a private loader, whatever the ring does.
#include "data/ring/shared_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "data/beton/reader.h"
#include "data/loader/batch_layout.h"
#include "data/ring/producer.h"
#include "data/ring/ring_error.h"
#include "framework/core/error.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/data/loader/batch_hash.h"
#include "tests/data/ring/silent_producer.h"
#include "tests/support/message_matchers.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using Hashes = std::vector<unsigned long>;
using ::testing::ElementsAreArray;

constexpr int kSlots = 3;
constexpr std::int64_t kBatches = 14;
constexpr const char* kDescription = R"({"of":"the test"})";

EpochRequest request(std::int64_t epoch, std::int64_t first_batch = 0) {
  return {.epoch = epoch, .first_batch = first_batch, .image_size_px = epoch == 1 ? 24 : 16};
}

class SharedLoaderTest : public ::testing::Test {
 protected:
  SharedLoaderTest() {
    test::write_made_beton(folder_ / "x.beton", {});
    reader_.emplace(folder_ / "x.beton");
    options_.batch_size = 7;
    options_.workers = 2;
    options_.seed = 3;
    options_.drop_last = true;
    options_.order = make_order(*reader_, {.name = "random"});
  }

  /// A name that no other ring on this host has.
  static std::string fresh_name() {
    static int count = 0;
    return "shared-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
  }

  Hashes expected(const EpochRequest& epoch_request) {
    Loader loader(*reader_, standard_train_pipeline(), options_);
    return test::hashes_of_pass(loader, epoch_request);
  }
  SharedLoader shared(const std::string& ring, const std::string& description = kDescription) {
    return {*reader_,
            standard_train_pipeline(),
            options_,
            {.name = ring, .description = description, .options = {}}};
  }
  static Hashes rest_of_pass(SharedLoader& loader) {
    Hashes all;
    while (const auto batch = loader.next()) all.push_back(test::hash(*batch));
    return all;
  }
  static Hashes pass(SharedLoader& loader, const EpochRequest& epoch_request) {
    loader.begin_epoch(epoch_request);
    return rest_of_pass(loader);
  }

  test::TemporaryFolder folder_;
  std::optional<BetonReader> reader_;
  LoaderOptions options_;
};

/// A producer in a thread. It publishes batches up to a limit that the test can raise.
class ProducerThread {
 public:
  ProducerThread(const BetonReader& reader, LoaderOptions options, const std::string& name,
                 int consumers, std::vector<EpochRequest> passes,
                 std::int64_t initial_batches = 1'000'000)
      : reader_(reader),
        ring_({.name = name,
               .slots = kSlots,
               .batch_size = options.batch_size,
               .batch_bytes = BatchLayout(resolve_outputs(reader, standard_train_pipeline(), false),
                                          options.batch_size, 24)
                                  .bytes(),
               .buffers = kSlots + 1 + options.batches_ahead,
               .description = kDescription}),
        options_(std::move(options)),
        passes_(std::move(passes)),
        allowed_(initial_batches),
        thread_([this, consumers] { run(consumers); }) {}
  ProducerThread(const ProducerThread&) = delete;
  ProducerThread& operator=(const ProducerThread&) = delete;
  ~ProducerThread() {
    ring_.interrupt();
    allow(1'000'000);
  }

  void allow(std::int64_t batches) {
    const std::scoped_lock lock(mutex_);
    allowed_ = batches;
    changed_.notify_all();
  }
  void wait_until_published(std::int64_t batches) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return published_ >= batches; });
  }
  RingProducer& ring() { return ring_; }

 private:
  void run(int consumers) {
    options_.allocator = ring_.allocator();
    Loader loader(reader_, standard_train_pipeline(), options_);
    if (!ring_.wait_for_consumers(consumers)) return;
    for (const EpochRequest& pass : passes_) {
      loader.begin_epoch(pass);
      std::int64_t number = pass.first_batch;
      while (const auto batch = loader.next()) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return published_ < allowed_; });
        lock.unlock();
        if (!ring_.publish(pass.epoch, number++, *batch)) return;
        lock.lock();
        ++published_;
        changed_.notify_all();
      }
      if (!ring_.end_pass(pass.epoch, number)) return;
    }
    ring_.finish();
  }

  const BetonReader& reader_;
  RingProducer ring_;
  LoaderOptions options_;
  const std::vector<EpochRequest> passes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t allowed_;
  std::int64_t published_ = 0;
  std::jthread thread_;
};

TEST_F(SharedLoaderTest, ReadsAllPassesFromTheRingWithoutThreadsOfItsOwn) {
  const std::string name = fresh_name();
  ProducerThread producer_thread(*reader_, options_, name, 1, {request(0), request(1), request(2)});
  SharedLoader loader = shared(name);
  for (const std::int64_t epoch : {0, 1, 2}) {
    EXPECT_THAT(pass(loader, request(epoch)), ElementsAreArray(expected(request(epoch))));
    EXPECT_TRUE(loader.on_ring());
  }
  EXPECT_EQ(loader.samples_shared(), 3 * loader.samples());
  EXPECT_EQ(loader.batches(), kBatches);
  EXPECT_EQ(loader.times().processing, 0);
  EXPECT_GT(loader.seconds_waited(), 0);
}

TEST_F(SharedLoaderTest, LoadsPrivatelyWithoutARing) {
  SharedLoader loader = shared("");
  // The times of a pass are complete when the next one has started.
  for (const std::int64_t epoch : {0, 1})
    EXPECT_THAT(pass(loader, request(epoch)), ElementsAreArray(expected(request(epoch))));
  EXPECT_FALSE(loader.on_ring());
  EXPECT_EQ(loader.samples_shared(), 0);
  EXPECT_GT(loader.times().processing, 0);
}

TEST_F(SharedLoaderTest, ARunThatTheRingHasPassedLoadsPrivatelyUntilTheNextPass) {
  const std::string name = fresh_name();
  ProducerThread producer_thread(*reader_, options_, name, 1, {request(0), request(1)},
                                 kBatches + 1);
  SharedLoader first = shared(name);
  first.begin_epoch(request(0));
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(first.next());
  // Resumes at batch 2. The ring has passed this batch, and does not continue because `first` is
  // not reading.
  SharedLoader resumed = shared(name);
  resumed.begin_epoch(request(0, 2));
  EXPECT_FALSE(resumed.on_ring());
  Hashes got;
  for (int i = 0; i < 3; ++i) got.push_back(test::hash(*resumed.next()));
  EXPECT_EQ(rest_of_pass(first).size(), 5U);
  producer_thread.wait_until_published(kBatches);
  for (const unsigned long hash : rest_of_pass(resumed)) got.push_back(hash);
  EXPECT_THAT(got, ElementsAreArray(expected(request(0, 2))));
  EXPECT_GT(resumed.times().processing, 0);
  producer_thread.allow(2 * kBatches);
  std::jthread with([&] { EXPECT_EQ(pass(first, request(1)).size(), kBatches); });
  EXPECT_THAT(pass(resumed, request(1)), ElementsAreArray(expected(request(1))));
}

TEST_F(SharedLoaderTest, ARunThatReachesTheRingInThePassJoinsIt) {
  const std::string name = fresh_name();
  ProducerThread producer_thread(*reader_, options_, name, 1, {request(0)}, 10);
  SharedLoader first = shared(name);
  first.begin_epoch(request(0));
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(first.next());
  SharedLoader late = shared(name);
  late.begin_epoch(request(0));
  Hashes got;
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(late.on_ring() && i < 6) << i;
    // The duration of a training step. It is longer than the pause between two attempts to join the
    // ring.
    std::this_thread::sleep_for(std::chrono::milliseconds(110));
    got.push_back(test::hash(*late.next()));
  }
  EXPECT_TRUE(late.on_ring());
  producer_thread.allow(kBatches);
  std::jthread with([&] { EXPECT_EQ(rest_of_pass(first).size(), 5U); });
  for (const unsigned long hash : rest_of_pass(late)) got.push_back(hash);
  EXPECT_THAT(got, ElementsAreArray(expected(request(0))));
  EXPECT_GE(late.samples_shared(), 4 * options_.batch_size);
}

TEST_F(SharedLoaderTest, WaitsForARingThatIsBehind) {
  const std::string name = fresh_name();
  ProducerThread producer_thread(*reader_, options_, name, 1, {request(0), request(1)});
  SharedLoader loader = shared(name);
  EXPECT_THAT(pass(loader, request(1, 3)), ElementsAreArray(expected(request(1, 3))));
  EXPECT_EQ(loader.samples_shared(), (kBatches - 3) * options_.batch_size);
  EXPECT_EQ(producer_thread.ring().samples_delivered(),
            static_cast<std::uint64_t>(loader.samples_shared()));
}

TEST_F(SharedLoaderTest, LoadsTheRestPrivatelyWhenTheProducerEnds) {
  for (const bool with_reason : {false, true}) {
    const std::string name = fresh_name();
    auto producer_thread =
        std::make_unique<ProducerThread>(*reader_, options_, name, 1, std::vector{request(0)}, 4);
    SharedLoader loader = shared(name);
    loader.begin_epoch(request(0));
    Hashes got;
    for (int i = 0; i < 4; ++i) got.push_back(test::hash(*loader.next()));
    EXPECT_TRUE(loader.on_ring());
    if (with_reason) producer_thread->ring().fail(DataError("no reason"));
    producer_thread.reset();
    for (const unsigned long hash : rest_of_pass(loader)) got.push_back(hash);
    EXPECT_THAT(got, ElementsAreArray(expected(request(0))));
    EXPECT_FALSE(loader.on_ring());
    EXPECT_THAT(pass(loader, request(1)), ElementsAreArray(expected(request(1))));
    EXPECT_EQ(loader.samples_shared(), 4 * options_.batch_size);
  }
}

TEST_F(SharedLoaderTest, JoinsAProducerThatIsStartedAgain) {
  const std::string name = fresh_name();
  SharedLoader loader = shared(name);
  EXPECT_THAT(pass(loader, request(0)), ElementsAreArray(expected(request(0))));
  ProducerThread producer_thread(*reader_, options_, name, 1, {request(1)});
  EXPECT_THAT(pass(loader, request(1)), ElementsAreArray(expected(request(1))));
  EXPECT_EQ(loader.samples_shared(), loader.samples());
}

TEST_F(SharedLoaderTest, JoinsAProducerThatFailedAndIsStartedAgainInTheSamePass) {
  const std::string name = fresh_name();
  auto first = std::make_unique<ProducerThread>(*reader_, options_, name, 1,
                                                std::vector{request(0), request(1)}, kBatches);
  SharedLoader loader = shared(name);
  EXPECT_THAT(pass(loader, request(0)), ElementsAreArray(expected(request(0))));
  first->ring().fail(RingError("no reason"));
  first.reset();
  loader.begin_epoch(request(1));
  EXPECT_FALSE(loader.on_ring());
  const ProducerThread again(*reader_, options_, name, 1, {request(1)});
  // The duration of a training step, longer than the pause between two attempts to join the ring.
  std::this_thread::sleep_for(std::chrono::milliseconds(110));
  EXPECT_THAT(rest_of_pass(loader), ElementsAreArray(expected(request(1))));
  EXPECT_EQ(loader.samples_shared(), 2 * loader.samples());
}

TEST_F(SharedLoaderTest, ARingThatLoadsSomethingElseIsNotUsed) {
  const std::string name = fresh_name();
  ProducerThread producer_thread(*reader_, options_, name, 1, {request(0)});
  SharedLoader other = shared(name, R"({"of":"another test"})");
  EXPECT_THAT(pass(other, request(0)), ElementsAreArray(expected(request(0))));
  EXPECT_EQ(other.samples_shared(), 0);
}

TEST_F(SharedLoaderTest, ABatchOfAnotherShapeIsNotUsed) {
  const std::string name = fresh_name();
  EpochRequest large = request(0);
  large.image_size_px = 24;
  ProducerThread producer_thread(*reader_, options_, name, 1, {large});
  SharedLoader loader = shared(name);
  EXPECT_THAT(pass(loader, request(0)), ElementsAreArray(expected(request(0))));
  EXPECT_EQ(loader.samples_shared(), 0);
}

TEST_F(SharedLoaderTest, AnEpochThatBeginsAgainIsLoadedAgain) {
  const std::string name = fresh_name();
  ProducerThread producer_thread(*reader_, options_, name, 1, {request(0), request(1)});
  SharedLoader loader = shared(name);
  loader.begin_epoch(request(0));
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(loader.next());
  EXPECT_THAT(pass(loader, request(0, 1)), ElementsAreArray(expected(request(0, 1))));
  EXPECT_THAT(pass(loader, request(1)), ElementsAreArray(expected(request(1))));
}

TEST_F(SharedLoaderTest, AStopRequestEndsTheWaitForARingThatDoesNotGoOn) {
  const std::string name = fresh_name();
  ProducerThread producer_thread(*reader_, options_, name, 1, {request(0)}, 2);
  std::atomic<bool> stopped{false};
  SharedLoader loader(*reader_, standard_train_pipeline(), options_,
                      {.name = name,
                       .description = kDescription,
                       .options = {.stopped = [&] { return stopped.load(); }, .on_mapped = {}}});
  loader.begin_epoch(request(0));
  Hashes got;
  for (int i = 0; i < 2; ++i) got.push_back(test::hash(*loader.next()));
  std::jthread stop([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    stopped = true;
  });
  for (const unsigned long hash : rest_of_pass(loader)) got.push_back(hash);
  EXPECT_THAT(got, ElementsAreArray(expected(request(0))));
}

TEST_F(SharedLoaderTest, AStopRequestEndsTheWaitForAProducerThatHangs) {
  const std::string name = fresh_name();
  const test::SilentProducer producer(name);
  int polls = 0;
  SharedLoader loader(*reader_, standard_train_pipeline(), options_,
                      {.name = name,
                       .description = kDescription,
                       .options = {.stopped = [&] { return ++polls > 1; }, .on_mapped = {}}});
  testing::internal::CaptureStderr();
  EXPECT_THAT(pass(loader, request(0)), ElementsAreArray(expected(request(0))));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_GT(polls, 1);
}

TEST_F(SharedLoaderTest, AFullRingIsTriedAgainInTheNextPass) {
  const std::string name = fresh_name();
  constexpr int kMaxConsumers = 64;
  ProducerThread producer_thread(*reader_, options_, name, kMaxConsumers, {request(0), request(1)});
  std::deque<RingConsumer> others;
  for (int i = 0; i < kMaxConsumers; ++i) others.emplace_back(name, RingJoin{});
  SharedLoader loader = shared(name);
  testing::internal::CaptureStderr();
  loader.begin_epoch(request(0));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, test::Names(kMaxConsumers));
  EXPECT_EQ(test::occurrences(log, "warning"), 1) << log;
  others.clear();
  // The producer notices a moment later that they have left.
  while (producer_thread.ring().consumers() > 0) std::this_thread::yield();
  EXPECT_THAT(rest_of_pass(loader), ElementsAreArray(expected(request(0))));
  EXPECT_EQ(loader.samples_shared(), 0);
  EXPECT_THAT(pass(loader, request(1)), ElementsAreArray(expected(request(1))));
  EXPECT_EQ(loader.samples_shared(), loader.samples());
}

TEST_F(SharedLoaderTest, ARingThatTakesTooLongIsNotUsedInTheRestOfThePass) {
  const std::string name = fresh_name();
  ProducerThread producer_thread(*reader_, options_, name, 0, {request(0), request(1)}, 2);
  producer_thread.wait_until_published(2);
  SharedLoader loader(*reader_, standard_train_pipeline(), options_,
                      {.name = name,
                       .description = kDescription,
                       .options = {},
                       .timeout = std::chrono::seconds(3)});
  EXPECT_THAT(pass(loader, request(0)), ElementsAreArray(expected(request(0))));
  EXPECT_FALSE(loader.on_ring());
  EXPECT_EQ(loader.samples_shared(), 2 * options_.batch_size);
  // In the next pass, the loader tries to use the ring again.
  producer_thread.allow(2 * kBatches);
  EXPECT_THAT(pass(loader, request(1)), ElementsAreArray(expected(request(1))));
  EXPECT_EQ(loader.samples_shared(), (2 + kBatches) * options_.batch_size);
}

TEST_F(SharedLoaderTest, ThePassAfterItsLastBatchIsEmpty) {
  SharedLoader loader = shared(fresh_name());
  EXPECT_THAT(pass(loader, request(0, kBatches)), ElementsAreArray(Hashes{}));
  EXPECT_TRUE(loader.ready());
  EXPECT_EQ(loader.times().processing, 0);
}

}  // namespace
}  // namespace precast::data
