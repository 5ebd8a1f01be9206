// Tests rings between processes: consumers get the same batches as from a private loader, and if a
// producer or a consumer dies, no other process hangs.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "data/beton/reader.h"
#include "data/loader/batch_layout.h"
#include "data/loader/loader.h"
#include "data/ring/consumer.h"
#include "data/ring/producer.h"
#include "data/ring/ring_error.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/data/loader/batch_hash.h"
#include "tests/data/ring/numbered_batches.h"
#include "tests/data/ring/silent_producer.h"
#include "tests/data/ring/test_ring.h"
#include "tests/support/child.h"
#include "tests/support/message_matchers.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

namespace fs = std::filesystem;
using test::Child;
using test::NumberedBatches;
using test::shared_with_children;
using test::SilentProducer;
using test::TestRing;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kMaxRecovery{60};

/// How often a test kills a process; PRECAST_RING_KILLS=200 is the long run.
int kills() {
  const char* const text = std::getenv("PRECAST_RING_KILLS");
  return text == nullptr ? 20 : std::max(1, std::atoi(text));
}

/// A name that no other ring on this host has.
std::string fresh_name() {
  static int count = 0;
  return "test-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
}

/// Lets children wait until another process calls open(), or ends without doing so.
class Gate {
 public:
  Gate() { EXPECT_EQ(::pipe(ends_.data()), 0); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() {
    ::close(ends_[0]);
    if (ends_[1] >= 0) ::close(ends_[1]);
  }
  /// Call in each process that does not call open().
  void close_sender() { ::close(std::exchange(ends_[1], -1)); }
  void open(std::size_t waiting) const {
    const std::vector<char> bytes(waiting, 'x');
    EXPECT_EQ(::write(ends_[1], bytes.data(), waiting), static_cast<ssize_t>(waiting));
  }
  [[nodiscard]] bool wait() const {
    char byte = 0;
    return ::read(ends_[0], &byte, 1) == 1;
  }

 private:
  std::array<int, 2> ends_{};
};

/// Whether the ring's socket exists, or a process still has the ring's segment mapped or open.
bool has_leftovers(const std::string& name) {
  const auto mentions = [&](const fs::path& path) {
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line))
      if (line.find("precast-ring") != line.npos && line.find(name) != line.npos) return true;
    return false;
  };
  if (mentions("/proc/net/unix")) return true;
  for (const auto& process : fs::directory_iterator("/proc")) {
    if (mentions(process.path() / "maps")) return true;
    std::error_code error;
    for (fs::directory_iterator fd(process.path() / "fd", error), end; !error && fd != end;
         fd.increment(error)) {
      const std::string target = fs::read_symlink(fd->path(), error).string();
      if (target.find("precast-ring:" + name) != target.npos) return true;
    }
  }
  return false;
}

TEST(RingProcessTest, FourConsumersReadTheBatchesOfAPrivateLoader) {
  constexpr std::size_t kConsumers = 4, kMaxReads = 64;
  constexpr int kSlots = 3;
  const std::vector<EpochRequest> requests = {{.epoch = 0, .image_size_px = 16},
                                              {.epoch = 1, .first_batch = 4, .image_size_px = 24},
                                              {.epoch = 2, .image_size_px = 16}};
  const test::TemporaryFolder folder;
  test::write_made_beton(folder / "x.beton", {});
  const BetonReader reader(folder / "x.beton");
  LoaderOptions options;
  options.batch_size = 7;
  options.workers = 2;
  options.seed = 3;
  options.order = make_order(reader, {.name = "random"});
  std::vector<unsigned long> expected;
  {
    Loader loader(reader, standard_train_pipeline(), options);
    for (const EpochRequest& request : requests)
      for (const unsigned long hash : test::hashes_of_pass(loader, request))
        expected.push_back(hash);
  }
  ASSERT_EQ(expected.size(), 15U + 11 + 15);

  struct Read {
    std::size_t count;
    std::array<unsigned long, kMaxReads> hashes;
  };
  const auto read = shared_with_children<std::array<Read, kConsumers>>();
  const std::string name = fresh_name();
  Gate gate;
  std::vector<Child> consumers;
  for (std::size_t c = 0; c < kConsumers; ++c) {
    consumers.emplace_back([&, c] {
      gate.close_sender();
      if (!gate.wait()) return 98;
      Read& consumer_read = (*read)[c];
      RingConsumer ring(name, {});
      while (ring.begin_pass())
        while (const auto batch = ring.next())
          consumer_read.hashes.at(consumer_read.count++) = test::hash(*batch);
      return 0;
    });
  }
  Child producer([&] {
    const std::vector<Output> outputs = resolve_outputs(reader, standard_train_pipeline(), false);
    RingProducer ring({.name = name,
                       .slots = kSlots,
                       .batch_size = options.batch_size,
                       .batch_bytes = BatchLayout(outputs, options.batch_size, 24).bytes(),
                       .buffers = kSlots + 1 + options.batches_ahead});
    LoaderOptions own = options;
    own.allocator = ring.allocator();
    Loader loader(reader, standard_train_pipeline(), own);
    gate.open(kConsumers);
    ring.wait_for_consumers(kConsumers);
    for (const EpochRequest& request : requests) {
      loader.begin_epoch(request);
      std::int64_t number = request.first_batch;
      while (const auto batch = loader.next()) ring.publish(request.epoch, number++, *batch);
      ring.end_pass(request.epoch, number);
    }
    ring.finish();
    return 0;
  });
  gate.close_sender();
  for (Child& consumer : consumers) EXPECT_EQ(consumer.wait(), 0);
  EXPECT_EQ(producer.wait(), 0);
  for (const Read& consumer : *read) {
    const std::span hashes(consumer.hashes.data(), consumer.count);
    EXPECT_EQ(std::vector(hashes.begin(), hashes.end()), expected);
  }
  EXPECT_FALSE(has_leftovers(name));
}

/// Publishes passes of 50 batches until `stop` is set.
int produce(const std::string& name, const Gate& gate, const std::atomic<bool>& stop) {
  RingProducer ring(NumberedBatches::options(name));
  const NumberedBatches batches(ring);
  gate.open(16);
  for (std::int64_t epoch = 0; !stop; ++epoch) {
    for (std::int64_t batch = 0; batch < 50; ++batch)
      if (!ring.publish(epoch, batch, batches.make(epoch, batch))) return 97;
    ring.end_pass(epoch, 50);
  }
  ring.finish();
  return 0;
}

/// Reads all passes and counts the batches. @param hold the largest number of batches that the
/// consumer holds at the same time.
int consume(const std::string& name, std::atomic<std::int64_t>& count, std::size_t hold) {
  RingConsumer ring(name, {});
  std::vector<HostBatch> held;
  while (auto at = ring.begin_pass()) {
    for (; auto batch = ring.next(); ++at->batch) {
      if (!NumberedBatches::is_correct(*batch, at->epoch, at->batch)) return 96;
      ++count;
      if (held.size() >= hold) held.clear();
      held.push_back(std::move(*batch));
    }
    // If they were held longer, the held batches, the end of the pass and the next batch would need
    // more slots than the ring has.
    held.clear();
  }
  return 0;
}

TEST(RingProcessTest, ConsumersContinueWhenOneOfThemIsKilledAtAnyMoment) {
  constexpr std::size_t kSurvivors = 3;
  constexpr std::int64_t kSlots = 3;
  struct Shared {
    std::atomic<bool> stop{false};
    std::array<std::atomic<std::int64_t>, kSurvivors> counts{};
    std::atomic<std::int64_t> killed_count{0};
  };
  const auto shared = shared_with_children<Shared>();
  const std::string name = fresh_name();
  Gate gate;
  Child producer([&] { return produce(name, gate, shared->stop); });
  gate.close_sender();
  ASSERT_TRUE(gate.wait());
  std::vector<Child> survivors;
  for (std::size_t s = 0; s < kSurvivors; ++s)
    survivors.emplace_back([&, s] { return consume(name, shared->counts[s], 1); });
  std::minstd_rand random(1);
  Clock::duration slowest{};
  for (int k = 0; k < kills(); ++k) {
    Child killed([&] { return consume(name, shared->killed_count, 2); });
    // Kills the consumer while it joins, while it waits for the start of an epoch, or while it
    // reads.
    const std::int64_t before = shared->killed_count;
    const auto begin = Clock::now();
    const auto reads = static_cast<std::int64_t>(random() % 2 * (random() % 150));
    while (shared->killed_count < before + reads && Clock::now() - begin < kMaxRecovery)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
    killed.kill();
    const auto since = Clock::now();
    for (const auto& count : shared->counts) {
      // These are more batches than the ring has slots, so the slots of the killed consumer must
      // have been freed.
      const std::int64_t enough = count + 2 * kSlots;
      while (count < enough && Clock::now() - since < kMaxRecovery)
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      ASSERT_GE(count.load(), enough) << "kill " << k;
    }
    slowest = std::max(slowest, Clock::now() - since);
  }
  shared->stop = true;
  for (Child& survivor : survivors) EXPECT_EQ(survivor.wait(), 0);
  EXPECT_EQ(producer.wait(), 0);
  EXPECT_GT(shared->killed_count.load(), 0);
  EXPECT_FALSE(has_leftovers(name));
  std::printf("%d kills; the other consumers continued after at most %.1f ms\n", kills(),
              std::chrono::duration<double, std::milli>(slowest).count());
}

TEST(RingProcessTest, ConsumersEndWithTheCauseWhenTheProducerIsKilledAtAnyMoment) {
  constexpr std::size_t kConsumers = 3;
  struct Shared {
    std::atomic<bool> stop{false};
    std::atomic<std::int64_t> count{0};
  };
  const auto shared = shared_with_children<Shared>();
  std::minstd_rand random(2);
  Clock::duration slowest{};
  int ended = 0;
  for (int k = 0; k < kills(); ++k) {
    const std::string name = fresh_name();
    Gate gate;
    std::vector<Child> consumers;
    for (std::size_t c = 0; c < kConsumers; ++c) {
      consumers.emplace_back([&] {
        gate.close_sender();
        return gate.wait() ? consume(name, shared->count, 1) : 98;
      });
    }
    Child producer([&] { return produce(name, gate, shared->stop); });
    gate.close_sender();
    // For odd k, kills the producer at any moment after the first batches; for even k, while the
    // ring starts.
    const std::int64_t enough = shared->count + 2;
    const auto begin = Clock::now();
    while (k % 2 != 0 && shared->count < enough && Clock::now() - begin < kMaxRecovery)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 12000));
    producer.kill();
    const auto since = Clock::now();
    for (Child& consumer : consumers) {
      const int code = consumer.wait();
      // The producer was killed after the consumer had joined (peer_failed), before it joined (io),
      // or before the ring existed (98).
      EXPECT_THAT(code, ::testing::AnyOf(static_cast<int>(ExitCode::peer_failed),
                                         static_cast<int>(ExitCode::io), 98))
          << "kill " << k;
      ended += code == static_cast<int>(ExitCode::peer_failed) ? 1 : 0;
    }
    slowest = std::max(slowest, Clock::now() - since);
    EXPECT_FALSE(has_leftovers(name));
  }
  EXPECT_LT(slowest, kMaxRecovery);
  EXPECT_GT(ended, 0);
  EXPECT_GT(shared->count.load(), 0);
  std::printf(
      "%d kills; %d consumers reported that the producer failed; all consumers ended at "
      "most %.1f ms after the kill\n",
      kills(), ended, std::chrono::duration<double, std::milli>(slowest).count());
}

TEST(RingProcessTest, AConsumerThatJoinsAfterTheEndReadsWhatIsPublished) {
  RingProducer ring(NumberedBatches::options(""));
  const NumberedBatches batches(ring);
  const int connection = ring.connect();
  ASSERT_TRUE(ring.publish(0, 0, batches.make(0, 0)));
  ASSERT_TRUE(ring.end_pass(0, 1));
  ring.finish();
  // By now the producer's service has announced the end on all connections, or does so while this
  // consumer joins.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  RingConsumer consumer(connection, {.mode = RingJoin::Mode::position, .position = {0, 0}});
  ASSERT_TRUE(consumer.begin_pass());
  EXPECT_TRUE(consumer.next());
  EXPECT_FALSE(consumer.next());
  EXPECT_FALSE(consumer.begin_pass());
}

TEST(RingProcessTest, ANameBelongsToOneProducerUntilItEnds) {
  const std::string name = fresh_name();
  {
    const RingProducer ring(NumberedBatches::options(name));
    EXPECT_THAT([&] { RingProducer(NumberedBatches::options(name)); },
                ::testing::ThrowsMessage<IoError>(test::Names(name)));
    EXPECT_THROW(RingProducer(NumberedBatches::options("a/b")), ConfigError);
    EXPECT_THROW(RingProducer(NumberedBatches::options(std::string(65, 'a'))), ConfigError);
  }
  EXPECT_THAT([&] { RingConsumer(name, {}); },
              ::testing::ThrowsMessage<IoError>(test::Names(name)));
  const RingProducer again(NumberedBatches::options(name));
}

TEST(RingProcessTest, ADescriptionIsReadWithoutBecomingAConsumer) {
  const std::string name = fresh_name();
  RingOptions options = NumberedBatches::options(name);
  options.description = std::string(kMaxRingDescriptionBytes, 'd');
  RingProducer ring(options);
  const NumberedBatches batches(ring);
  EXPECT_EQ(read_ring_description(name), options.description);
  EXPECT_EQ(ring.consumers(), 0);
  RingConsumer consumer(name, {.mode = RingJoin::Mode::position, .position = {2, 1}});
  EXPECT_EQ(ring.consumers(), 1);
  EXPECT_EQ(consumer.description(), options.description);
  ASSERT_TRUE(ring.publish(2, 1, batches.make(2, 1)));
  EXPECT_EQ(consumer.begin_pass(), (RingPosition{2, 1}));
  ASSERT_TRUE(consumer.next());
  options.name = fresh_name();
  options.description += 'd';
  EXPECT_THAT([&] { RingProducer{options}; },
              ::testing::ThrowsMessage<ConfigError>(
                  test::Names(kMaxRingDescriptionBytes, kMaxRingDescriptionBytes + 1)));
}

TEST(RingProcessTest, ARingStartsAtTheEarliestPositionOfItsConsumers) {
  RingProducer ring(NumberedBatches::options(""));
  const NumberedBatches batches(ring);
  RingConsumer late(ring.connect(), {.mode = RingJoin::Mode::position, .position = {3, 5}});
  {
    RingConsumer early(ring.connect(), {.mode = RingJoin::Mode::position, .position = {3, 4}});
    EXPECT_EQ(ring.start(), (RingPosition{3, 4}));
    EXPECT_THAT(
        [&] {
          RingConsumer(ring.connect(), {.mode = RingJoin::Mode::position, .position = {3, 3}});
        },
        ::testing::ThrowsMessage<RingError>(test::Names(3, 4)));
    for (const std::int64_t batch : {4, 5, 6}) ring.publish(3, batch, batches.make(3, batch));
    ASSERT_TRUE(early.begin_pass());
    EXPECT_TRUE(early.next());
    EXPECT_EQ(ring.samples_delivered(), 8U);
    EXPECT_EQ(late.begin_pass(), (RingPosition{3, 5}));
    EXPECT_TRUE(late.next());
    EXPECT_EQ(ring.samples_delivered(), 16U) << "batches that a consumer skips must not count";
    EXPECT_FALSE(ring.all_released());
    EXPECT_TRUE(late.next());
  }
  // The producer notices a moment later that the other consumer has left.
  const auto begin = Clock::now();
  while (!ring.all_released() && Clock::now() - begin < kMaxRecovery)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(ring.all_released());
  EXPECT_EQ(ring.samples_delivered(), 24U);
  EXPECT_EQ(ring.start(), (RingPosition{3, 7}))
      << "once items are published, the start is the next position";
}

TEST(RingProcessTest, AConsumerThatIsAskedToStopWaitsNoLonger) {
  RingProducer ring(NumberedBatches::options(""));
  bool joined = false;
  int polls = 0;
  RingConsumer consumer(ring.connect(), {},
                        {.stopped = [&] { return joined && ++polls == 2; }, .on_mapped = {}});
  joined = true;
  EXPECT_FALSE(consumer.begin_pass());
  EXPECT_EQ(polls, 2);
}

TEST(RingProcessTest, AConsumerCanBeAskedToStopWhileItJoins) {
  for (const auto queue : {SilentProducer::Queue::many, SilentProducer::Queue::one}) {
    const std::string name = fresh_name();
    SilentProducer producer(name, queue);
    if (queue == SilentProducer::Queue::one) producer.fill_queue();
    int polls = 0;
    EXPECT_THROW(RingConsumer(name, {}, {.stopped = [&] { return ++polls == 2; }, .on_mapped = {}}),
                 RingError);
    EXPECT_EQ(polls, 2);
  }
}

TEST(RingProcessTest, WhatIsMadeOfTheMappingLivesAsLongAsTheBatches) {
  RingProducer ring(NumberedBatches::options(""));
  const NumberedBatches batches(ring);
  std::weak_ptr<void> locked;
  std::optional<HostBatch> batch;
  {
    RingConsumer consumer(ring.connect(), {},
                          {.stopped = {}, .on_mapped = [&](std::span<const std::byte> memory) {
                             EXPECT_GT(memory.size(), NumberedBatches::kBatchBytes);
                             const std::shared_ptr<void> made = std::make_shared<int>(1);
                             locked = made;
                             return made;
                           }});
    ring.publish(0, 0, batches.make(0, 0));
    ASSERT_TRUE(consumer.begin_pass());
    EXPECT_TRUE(consumer.ready());
    batch = consumer.next();
    EXPECT_FALSE(consumer.ready());
  }
  EXPECT_FALSE(locked.expired());
  batch.reset();
  EXPECT_TRUE(locked.expired());
}

TEST(RingProcessTest, ABatchCannotBeWrittenTo) {
  RingProducer ring(NumberedBatches::options(""));
  const NumberedBatches batches(ring);
  RingConsumer reader(ring.connect(), {});
  ASSERT_TRUE(ring.publish(0, 0, batches.make(0, 0)));
  ASSERT_TRUE(reader.begin_pass());
  const auto batch = reader.next();
  ASSERT_TRUE(batch);
  Child writes([&] {
    std::signal(SIGSEGV, SIG_DFL);
    batch->fields[0].data[0] = std::byte{1};
    return 0;
  });
  EXPECT_EQ(writes.wait(), 128 + SIGSEGV);
}

/// Replaces a RingProducer: replies to a join with a message and a descriptor.
class FakeProducer {
 public:
  /// @param memfd the descriptor to send, or -1 to send none; the object owns it.
  FakeProducer(RingReplyMessage reply, int memfd) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    producer_socket_ = ends[0];
    consumer_socket_ = ends[1];
    iovec part{.iov_base = &reply, .iov_len = sizeof reply};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (memfd >= 0) {
      header.msg_control = control.data();
      header.msg_controllen = control.size();
      cmsghdr* const rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(rights), &memfd, sizeof memfd);
    }
    EXPECT_EQ(::sendmsg(producer_socket_, &header, 0), 32);
    if (memfd >= 0) ::close(memfd);
  }
  FakeProducer(const FakeProducer&) = delete;
  FakeProducer& operator=(const FakeProducer&) = delete;
  ~FakeProducer() { ::close(producer_socket_); }
  [[nodiscard]] int connection() const { return consumer_socket_; }

 private:
  int producer_socket_ = -1;
  int consumer_socket_ = -1;
};

/// A memfd with these bytes.
int memfd_of(std::span<const std::byte> bytes, int seals = F_SEAL_SHRINK) {
  const int fd = ::memfd_create("made", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT_EQ(::write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  EXPECT_EQ(::fcntl(fd, F_ADD_SEALS, seals), 0);
  return fd;
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& fd : fs::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

TEST(RingAttachTest, ASegmentOfAnotherMakerIsReadOrAnError) {
  constexpr RingReplyMessage kWelcome{.kind = 1, .cell = 0, .sequence = 0};
  const std::size_t before = open_descriptors();
  const auto attach = [](const RingReplyMessage& reply, int memfd) {
    const FakeProducer producer(reply, memfd);
    RingConsumer consumer(producer.connection(), {.position = {.epoch = 5}});
    return true;
  };
  TestRing made;
  EXPECT_TRUE(attach(kWelcome, memfd_of(made.bytes())));
  EXPECT_THROW(attach(kWelcome, -1), RingError) << "the reply has no descriptor";
  EXPECT_THROW(attach(kWelcome, memfd_of(made.bytes(), 0)), RingError) << "the segment may shrink";
  EXPECT_THROW(attach(kWelcome, ::open("/dev/zero", O_RDWR | O_CLOEXEC)), RingError);
  EXPECT_THROW(attach(kWelcome, memfd_of({})), RingError);
  for (std::size_t size = 1; size < TestRing::kBytes; size += 97)
    EXPECT_THROW(attach(kWelcome, memfd_of(made.bytes().first(size))), RingError) << size;
  EXPECT_THROW(attach({.kind = 1, .cell = 2}, memfd_of(made.bytes())), RingError);
  EXPECT_THROW(attach({.kind = 1, .cell = 0, .sequence = 3}, memfd_of(made.bytes())), RingError);
  EXPECT_THROW(attach({.kind = 2}, memfd_of(made.bytes())), RingError)
      << "the reply announces the end";
  EXPECT_THROW(attach({.version = 2, .kind = 1}, memfd_of(made.bytes())), RingError);
  TestRing damaged;
  damaged.bytes()[0] = std::byte{0};
  EXPECT_THROW(attach(kWelcome, memfd_of(damaged.bytes())), RingError);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(RingAttachTest, ABatchThatDoesNotFollowTheLastIsAnError) {
  TestRing made;
  const FakeProducer producer({.kind = 1}, memfd_of(made.bytes()));
  const RingJoin join = {.mode = RingJoin::Mode::position, .position = {5, 7}};
  RingConsumer consumer(producer.connection(), join);
  EXPECT_EQ(consumer.begin_pass(), join.position);
  EXPECT_TRUE(consumer.next());
  EXPECT_FALSE(consumer.next());
  made.bytes()[TestRing::kSlotsAt + 576 + 24] = std::byte{9};
  const FakeProducer gap({.kind = 1}, memfd_of(made.bytes()));
  RingConsumer other(gap.connection(), join);
  EXPECT_TRUE(other.begin_pass());
  EXPECT_TRUE(other.next());
  EXPECT_THAT([&] { static_cast<void>(other.next()); },
              ::testing::ThrowsMessage<RingError>(test::Names(8, 9)));
  const FakeProducer passed({.kind = 1}, memfd_of(made.bytes()));
  RingConsumer late(passed.connection(), {.mode = RingJoin::Mode::position, .position = {5, 8}});
  EXPECT_THROW(static_cast<void>(late.begin_pass()), RingError);
}

TEST(RingAttachTest, ADeadProducerInAnotherPidNamespaceIsAnErrorWithoutANumber) {
  constexpr int kNoNamespace = 97;
  Child outside([] {
    TestRing made;
    std::optional<FakeProducer> producer(std::in_place, RingReplyMessage{.kind = 1},
                                         memfd_of(made.bytes()));
    if (::unshare(CLONE_NEWPID) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
      return kNoNamespace;
    Child inside([&producer] {
      RingConsumer consumer(producer->connection(),
                            {.mode = RingJoin::Mode::position, .position = {5, 7}});
      producer.reset();
      try {
        while (consumer.begin_pass())
          while (consumer.next()) {
          }
      } catch (const RingError& error) {
        return test::names(error.what(), "0") ? 1 : static_cast<int>(error.exit_code());
      }
      return 2;
    });
    producer.reset();
    return inside.wait();
  });
  const int code = outside.wait();
  if (code == kNoNamespace) GTEST_SKIP() << "this user may not create a PID namespace";
  EXPECT_EQ(code, static_cast<int>(ExitCode::peer_failed));
}

}  // namespace
}  // namespace precast::data
