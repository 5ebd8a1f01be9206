// Tests the ring protocol with all sides in one process. Where the thread sanitizer must see the
// accesses of both sides, they use the same mapping.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "data/ring/consumer.h"
#include "data/ring/producer.h"
#include "data/ring/ring_error.h"
#include "data/ring/ring_reader.h"
#include "data/ring/ring_writer.h"
#include "framework/core/error.h"
#include "framework/core/rng.h"
#include "tests/data/ring/numbered_batches.h"
#include "tests/support/message_matchers.h"
#include "tests/support/other_threads.h"

namespace precast::data {
namespace {

using test::Names;
using test::NumberedBatches;
using ::testing::ElementsAre;
using ::testing::ThrowsMessage;

/// A ring of 3 slots in ordinary memory, with room for the data of one more batch.
class InProcessRing {
 public:
  static constexpr std::uint64_t kSlots = 3, kCells = 8, kSamples = 4, kBatchBytes = 256;

  InProcessRing() : words_(plan().segment_bytes / 8), writer_(bytes(), plan(), kSamples) {
    for (std::uint64_t i = 0; i <= kSlots; ++i)
      free_.insert(bytes().data() + plan().data_offset + RingWriter::ids_bytes(kSlots, kSamples) +
                   i * kBatchBytes);
  }

  RingWriter& writer() { return writer_; }
  std::unique_ptr<RingReader> reader(const RingWriter::Admission& admission) {
    return std::make_unique<RingReader>(bytes(), read_ring_header(bytes()),
                                        bytes().data() + plan().control_offset, admission.cell,
                                        admission.sequence);
  }
  bool publish(std::int64_t epoch, std::int64_t batch) {
    std::byte* const at = take();
    std::fill_n(at, kBatchBytes, NumberedBatches::value(epoch, batch));
    std::shared_ptr<const void> owner(at, [this](auto* data) { give_back(data); });
    return writer_.publish({.position = {.epoch = epoch, .batch = batch},
                            .fields = {{.name = "image",
                                        .type = ElementType::u8,
                                        .shape = {kSamples, kBatchBytes / kSamples},
                                        .data = at}},
                            .sample_ids = std::vector(kSamples, static_cast<std::uint64_t>(batch))},
                           std::move(owner));
  }
  static bool is_correct(const RingItem& item) {
    const std::byte expected = NumberedBatches::value(item.position.epoch, item.position.batch);
    return std::ranges::all_of(item.fields.at(0).values<std::byte>(),
                               [&](std::byte byte) { return byte == expected; }) &&
           item.sample_ids.at(3) == static_cast<std::uint64_t>(item.position.batch);
  }

 private:
  static RingHeader plan() {
    RingHeader header{.slots = kSlots, .cells = kCells, .control_offset = kRingHeaderBytes};
    header.slots_offset = header.control_offset + header.control_bytes();
    header.slot_bytes = sizeof(RingSlot) + 2 * sizeof(RingOutput);
    header.data_offset = header.slots_offset + kSlots * header.slot_bytes;
    header.data_bytes = RingWriter::ids_bytes(kSlots, kSamples) + (kSlots + 1) * kBatchBytes;
    header.segment_bytes = header.data_offset + header.data_bytes;
    return header;
  }
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(words_)); }
  std::byte* take() {
    const std::scoped_lock lock(mutex_);
    return free_.extract(free_.begin()).value();
  }
  void give_back(const void* data) {
    const std::scoped_lock lock(mutex_);
    free_.insert(const_cast<std::byte*>(static_cast<const std::byte*>(data)));
  }

  std::vector<std::uint64_t> words_;
  std::mutex mutex_;
  std::set<std::byte*> free_;
  RingWriter writer_;
};

/// Takes up to `max_items` items, holds up to two of them, and releases them in random order.
/// Expects that all are correct and in order. @return the number of items taken.
std::int64_t consume(RingReader& reader, std::uint64_t seed, std::int64_t max_items) {
  RandomStream random(seed, 0, 0, RandomUse::test);
  std::deque<std::uint64_t> held;
  RingPosition before{.epoch = -1};
  std::int64_t count = 0;
  while (count < max_items) {
    const auto taken = reader.take();
    if (!taken) break;
    EXPECT_TRUE(InProcessRing::is_correct(taken->item)) << taken->sequence;
    EXPECT_LT(before, taken->item.position);
    before = taken->item.position;
    held.push_back(taken->sequence);
    ++count;
    // The ring has 3 slots, so the next item needs the slot of the third-to-last item.
    if (held.front() + 2 == taken->sequence) {
      reader.release(held.front());
      held.pop_front();
    } else if (held.size() > random.below(3)) {
      const auto any = held.begin() + static_cast<std::ptrdiff_t>(random.below(held.size()));
      reader.release(*any);
      held.erase(any);
    }
  }
  for (const std::uint64_t sequence : held) reader.release(sequence);
  return count;
}

TEST(RingProtocolTest, ConsumersThatJoinAndLeaveReadOnlyCompleteBatches) {
  constexpr std::int64_t kEpochs = 6, kBatches = 200;
  InProcessRing ring;
  std::array<std::int64_t, 4> counts{};
  std::vector<std::unique_ptr<RingReader>> readers;
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto admission = ring.writer().admit({});
    readers.push_back(ring.reader(admission));
  }
  for (std::size_t i = 0; i < counts.size(); ++i)
    threads.emplace_back([&, i] { counts[i] = consume(*readers[i], i, kEpochs * kBatches); });
  std::atomic<bool> over{false};
  std::jthread visitors([&] {
    for (std::uint64_t visit = 0; !over; ++visit) {
      const auto admission = ring.writer().admit({.mode = RingJoin::Mode::epoch_start});
      const auto reader = ring.reader(admission);
      if (over) reader->end();
      consume(*reader, visit, static_cast<std::int64_t>(visit % 5));
      ring.writer().leave(admission.cell);
    }
  });
  for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    for (std::int64_t batch = 0; batch < kBatches; ++batch) {
      // The visitors end before the last items are published; otherwise the last visitor might wait
      // for an item that is never published.
      if (epoch == kEpochs - 1 && batch == kBatches - 10) over = true;
      EXPECT_TRUE(ring.publish(epoch, batch));
    }
  }
  threads.clear();
  for (const std::int64_t count : counts) EXPECT_EQ(count, kEpochs * kBatches);
}

/// Waits until the other threads sleep and no longer wake each other.
void wait_until_idle() {
  for (int i = 0; i < 5; ++i) test::wait_until_other_threads_sleep();
}

TEST(RingProtocolTest, TheFastestIsAtMostAsManyBatchesAheadAsThereAreSlots) {
  InProcessRing ring;
  const auto slow_admission = ring.writer().admit({});
  const auto slow = ring.reader(slow_admission);
  const auto fast = ring.reader(ring.writer().admit({}));
  std::atomic<int> published{0};
  std::jthread producer([&] {
    while (ring.publish(0, published)) ++published;
  });
  std::atomic<int> taken{0};
  std::jthread consumer([&] {
    while (const auto item = fast->take()) {
      fast->release(item->sequence);
      ++taken;
    }
  });
  wait_until_idle();
  EXPECT_EQ(taken.load(), 3);
  const auto first = slow->take();
  ASSERT_TRUE(first);
  wait_until_idle();
  EXPECT_EQ(taken.load(), 3) << "the slow consumer has taken an item, but not released it";
  slow->release(first->sequence);
  wait_until_idle();
  EXPECT_EQ(taken.load(), 4);
  ring.writer().leave(slow_admission.cell);
  while (taken < 50) std::this_thread::yield();
  ring.writer().stop();
  producer.join();
  fast->end();
  consumer.join();
  EXPECT_EQ(taken.load(), published.load()) << "all items published before the end must be read";
}

/// Reads all passes and expects that all batches are correct. @return for each pass, the epoch and
/// then the numbers of its batches.
std::vector<std::vector<std::int64_t>> read_passes(RingConsumer& ring) {
  std::vector<std::vector<std::int64_t>> passes;
  while (auto at = ring.begin_pass()) {
    passes.push_back({at->epoch});
    for (; const auto batch = ring.next(); ++at->batch) {
      EXPECT_TRUE(NumberedBatches::is_correct(*batch, at->epoch, at->batch));
      passes.back().push_back(at->batch);
    }
  }
  return passes;
}

void publish_passes(RingProducer& ring, std::int64_t epochs, std::int64_t batches) {
  const NumberedBatches numbered(ring);
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (std::int64_t batch = 0; batch < batches; ++batch)
      EXPECT_TRUE(ring.publish(epoch, batch, numbered.make(epoch, batch)));
    EXPECT_TRUE(ring.end_pass(epoch, batches));
  }
}

TEST(RingTest, AConsumerJoinsAtABatchOrAtTheStartOfAnEpoch) {
  RingProducer ring(NumberedBatches::options("", /*slots=*/4));
  std::vector<std::vector<std::int64_t>> at_batch, at_epoch, at_any_epoch;
  RingConsumer one(ring.connect(), {.mode = RingJoin::Mode::position, .position = {1, 2}});
  RingConsumer two(ring.connect(), {.position = {.epoch = 1}});
  RingConsumer three(ring.connect(), {});
  std::vector<std::jthread> threads;
  threads.emplace_back([&] { at_batch = read_passes(one); });
  threads.emplace_back([&] { at_epoch = read_passes(two); });
  threads.emplace_back([&] { at_any_epoch = read_passes(three); });
  publish_passes(ring, 3, 3);
  ring.finish();
  threads.clear();
  using Pass = std::vector<std::int64_t>;
  EXPECT_THAT(at_batch, ElementsAre(Pass{1, 2}, Pass{2, 0, 1, 2}));
  EXPECT_THAT(at_epoch, ElementsAre(Pass{1, 0, 1, 2}, Pass{2, 0, 1, 2}));
  EXPECT_THAT(at_any_epoch, ElementsAre(Pass{0, 0, 1, 2}, Pass{1, 0, 1, 2}, Pass{2, 0, 1, 2}));
}

TEST(RingTest, APositionThatHasPassedIsAnErrorAndOneThatIsKeptIsNot) {
  RingProducer ring(NumberedBatches::options("", /*slots=*/4));
  const RingJoin first = {.mode = RingJoin::Mode::position, .position = {0, 0}};
  const RingJoin third = {.mode = RingJoin::Mode::position, .position = {0, 2}};
  std::jthread producer([&] {
    publish_passes(ring, 1, 6);
    ring.finish();
  });
  {
    RingConsumer reader(ring.connect(), first);
    ASSERT_TRUE(reader.begin_pass());
    EXPECT_TRUE(reader.next());
    EXPECT_TRUE(reader.next());
  }
  // Without consumers, the ring waits at the position where the last consumer left.
  while (ring.consumers() > 0) std::this_thread::yield();
  EXPECT_THAT([&] { RingConsumer(ring.connect(), first); },
              ThrowsMessage<RingError>(Names("epoch", "batch", 2)));
  RingConsumer again(ring.connect(), third);
  using Pass = std::vector<std::int64_t>;
  EXPECT_THAT(read_passes(again), ElementsAre(Pass{0, 2, 3, 4, 5}));
}

TEST(RingTest, APassCanBeLeftEarlyAndBatchesBeKept) {
  RingProducer ring(NumberedBatches::options("", /*slots=*/8));
  auto reader = std::make_unique<RingConsumer>(ring.connect(), RingJoin{});
  std::jthread producer([&] {
    publish_passes(ring, 2, 5);
    ring.finish();
  });
  ASSERT_TRUE(reader->begin_pass());
  static_cast<void>(reader->next());
  EXPECT_EQ(reader->begin_pass(), (RingPosition{.epoch = 1}));
  const auto kept = reader->next();
  ASSERT_TRUE(kept);
  reader.reset();
  producer.join();
  EXPECT_TRUE(NumberedBatches::is_correct(*kept, 1, 0));
  EXPECT_EQ(ring.consumers(), 1) << "the consumer counts as long as one of its batches is in use";
}

TEST(RingTest, AnErrorOfTheProducerReachesConsumersAfterTheBatchesBeforeIt) {
  auto ring = std::make_unique<RingProducer>(NumberedBatches::options(""));
  RingConsumer reader(ring->connect(), {});
  RingConsumer other(ring->connect(), {});
  {
    const NumberedBatches numbered(*ring);
    EXPECT_TRUE(ring->publish(0, 0, numbered.make(0, 0)));
  }
  ring->fail(DataError("a.beton: sample 17"));
  EXPECT_TRUE(reader.begin_pass());
  EXPECT_TRUE(reader.next());
  try {
    static_cast<void>(reader.next());
    ADD_FAILURE() << "expected an error";
  } catch (const RingError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::dataset_invalid);
    EXPECT_THAT(error.what(), Names("a.beton", 17));
  }
  const RingJoin later = {.mode = RingJoin::Mode::position, .position = {9, 0}};
  EXPECT_THROW(RingConsumer(ring->connect(), later).begin_pass().reset(), RingError);
}

TEST(RingTest, AProducerThatEndsWithoutAMessageIsAnError) {
  auto ring = std::make_unique<RingProducer>(NumberedBatches::options(""));
  RingConsumer reader(ring->connect(), {});
  std::jthread stops([&] {
    test::wait_until_other_threads_sleep();
    ring.reset();
  });
  try {
    static_cast<void>(reader.begin_pass());
    ADD_FAILURE() << "expected an error";
  } catch (const RingError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::peer_failed);
  }
}

TEST(RingTest, InterruptEndsTheWaitsOfBothSides) {
  RingProducer ring(NumberedBatches::options(""));
  RingConsumer reader(ring.connect(), {});
  std::jthread consumer([&] { EXPECT_FALSE(reader.begin_pass()); });
  std::jthread producer([&] { EXPECT_FALSE(ring.wait_for_consumers(2)); });
  test::wait_until_other_threads_sleep();
  reader.interrupt();
  ring.interrupt();
}

TEST(RingTest, SixtyFourConsumersJoinAndNoMore) {
  RingProducer ring(NumberedBatches::options(""));
  std::deque<RingConsumer> readers;
  for (int i = 0; i < 64; ++i) readers.emplace_back(ring.connect(), RingJoin{});
  try {
    RingConsumer(ring.connect(), {});
    ADD_FAILURE() << "expected an error";
  } catch (const RingError& error) {
    EXPECT_THAT(error.what(), Names(64));
    EXPECT_EQ(error.exit_code(), ExitCode::loader)
        << "exit code 2 would mean that the position has passed";
  }
  readers.pop_front();
  while (ring.consumers() == 64) std::this_thread::yield();
  const RingConsumer another(ring.connect(), {});
  EXPECT_EQ(ring.consumers(), 64);
}

TEST(RingTest, AConsumerWithTooManyOpenFilesSaysSo) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the undefined-behaviour sanitizer needs a free descriptor for its checks";
#endif
  RingProducer ring(NumberedBatches::options(""));
  const int connection = ring.connect();
  const int lowest_free = ::dup(connection);
  ASSERT_EQ(::close(lowest_free), 0);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none_free = before;
  none_free.rlim_cur = static_cast<rlim_t>(lowest_free);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none_free), 0);
  EXPECT_THAT([&] { const RingConsumer consumer(connection, {}); },
              ThrowsMessage<IoError>(Names(std::strerror(EMFILE))));
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(RingTest, AConnectionThatDoesNotFollowTheProtocolIsClosed) {
  RingProducer ring(NumberedBatches::options(""));
  const int garbage = ring.connect();
  ASSERT_EQ(::send(garbage, "hello", 5, 0), 5);
  std::array<char, 4096> answer{};
  EXPECT_GT(::recv(garbage, answer.data(), answer.size(), 0), 0);
  EXPECT_EQ(::recv(garbage, answer.data(), answer.size(), 0), 0);
  ::close(garbage);
  const int other_version = ring.connect();
  const RingJoinMessage join{.version = 2, .mode = 2};
  ASSERT_EQ(::send(other_version, &join, sizeof join, 0), 32);
  const ssize_t bytes = ::recv(other_version, answer.data(), answer.size(), 0);
  ASSERT_GT(bytes, 32);
  EXPECT_THAT(std::string(answer.data() + 32, static_cast<std::size_t>(bytes) - 32), Names(1, 2));
  ::close(other_version);
  EXPECT_EQ(ring.consumers(), 0);
}

}  // namespace
}  // namespace precast::data
