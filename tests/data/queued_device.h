#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

namespace precast::test {

/// When a stream of QueuedDevice runs its work.
enum class Pace {
  /// As soon as it is queued.
  eager,
  /// Only when something waits for it.
  late,
  /// Piece by piece at random times, and when something waits for it.
  random
};

/// A deliberate fault of a QueuedDevice, which the tests must detect.
enum class Fault { none, query_lies, no_block_consumer, no_record_stream, no_synchronize };

inline constexpr std::byte kPoison{0xDB};

/// Simulates a device in host memory, with a copy stream and a consumer's stream. The work of a
/// stream runs in order, at times that depend on its Pace. Memory is allocated as by CUDA's caching
/// allocator: the copy stream's next work can reuse a released block immediately, even if the
/// consumer's stream has not read it yet; record_stream() prevents this. The copy stream fills new
/// memory with kPoison. Not thread-safe; must outlive the Memory that it has returned.
class QueuedDevice {
 public:
  struct Options {
    Pace copies = Pace::eager;
    Pace consumer = Pace::eager;
    Fault fault = Fault::none;
    unsigned seed = 1;
  };
  enum Stream { kCopies, kConsumer };
  /// An event that has happened once the first `position` pieces of work of the stream have run.
  struct Event {
    Stream stream;
    std::size_t position;
  };
  struct Block {
    std::vector<std::byte> bytes;
    bool recorded = false;
  };
  using Memory = std::shared_ptr<Block>;

  explicit QueuedDevice(const Options& options) : options_(options), random_(options.seed) {}
  QueuedDevice(const QueuedDevice&) = delete;
  QueuedDevice& operator=(const QueuedDevice&) = delete;

  void queue(Stream stream, std::function<void()> work) {
    streams_[stream].work.push_back(std::move(work));
    let_time_pass();
  }
  [[nodiscard]] Event record(Stream stream) const {
    return {stream, streams_[stream].ran + streams_[stream].work.size()};
  }
  [[nodiscard]] bool query(const Event& event) {
    let_time_pass();
    return options_.fault == Fault::query_lies || happened(event);
  }
  void block(Stream stream, const Event& event) {
    if (options_.fault == Fault::no_block_consumer) return;
    queue(stream, [this, event] { run_until(event); });
  }
  void record_stream(Block& block) const {
    block.recorded = options_.fault != Fault::no_record_stream;
  }
  /// Makes the host wait for all work queued on the stream.
  void synchronize(Stream stream) {
    ++synchronizations_;
    if (options_.fault != Fault::no_synchronize) run_until(record(stream));
  }

  /// Makes the host wait for the event.
  void wait(const Event& event) {
    if (!happened(event)) ++waits_;
    run_until(event);
  }

  [[nodiscard]] Memory allocate(std::size_t bytes) {
    if (allocations_left_ == 0) throw std::runtime_error("device: out of memory");
    --allocations_left_;
    Block* block = take_idle(bytes);
    queue(kCopies, [block] { std::ranges::fill(block->bytes, kPoison); });
    return {block, [this](Block* released) { release(*released); }};
  }
  /// Queues a copy from host memory, and checks that the memory contains the same bytes when the
  /// copy runs.
  [[nodiscard]] Memory copy(const std::byte* host, std::size_t bytes) {
    Memory memory = allocate(bytes);
    queue(kCopies, [this, host, to = memory.get(), queued = std::vector(host, host + bytes)] {
      std::memcpy(to->bytes.data(), host, to->bytes.size());
      if (to->bytes != queued) ++changed_sources_;
    });
    return memory;
  }
  /// Queues the kernel of these tests: out = ~in. `in` may be released after the call.
  [[nodiscard]] Memory invert(const Memory& in) {
    Memory out = allocate(in->bytes.size());
    queue(kCopies, [from = in.get(), to = out.get()] {
      std::ranges::transform(from->bytes, to->bytes.begin(), [](std::byte b) { return ~b; });
    });
    return out;
  }

  /// Makes allocate() throw after `count` more calls.
  void limit_allocations(std::size_t count) { allocations_left_ = count; }
  /// Runs all queued work. This does not count as a synchronisation by the code under test.
  void finish() {
    run_until(record(kCopies));
    run_until(record(kConsumer));
  }
  /// The number of blocks of device memory that have ever been allocated.
  [[nodiscard]] std::size_t blocks() const { return blocks_.size(); }
  /// The number of calls of wait() for events that had not happened.
  [[nodiscard]] int waits() const { return waits_; }
  [[nodiscard]] int synchronizations() const { return synchronizations_; }
  /// Number of copies whose host memory had changed by the time they ran.
  [[nodiscard]] int changed_sources() const { return changed_sources_; }

 private:
  struct Queue {
    std::deque<std::function<void()>> work;
    std::size_t ran = 0;
  };
  struct InUse {
    Block* block;
    Event last_use;
  };

  [[nodiscard]] bool happened(const Event& event) const {
    return streams_[event.stream].ran >= event.position;
  }
  void run_until(const Event& event) {
    while (!happened(event)) run_one(event.stream);
  }
  void run_one(Stream stream) {
    const std::function<void()> work = std::move(streams_[stream].work.front());
    streams_[stream].work.pop_front();
    work();
    ++streams_[stream].ran;
  }
  void let_time_pass() {
    for (const Stream stream : {kCopies, kConsumer}) {
      const Pace pace = stream == kCopies ? options_.copies : options_.consumer;
      if (pace == Pace::late) continue;
      while (!streams_[stream].work.empty() && (pace == Pace::eager || random_() % 4 == 0))
        run_one(stream);
    }
  }

  Block* take_idle(std::size_t bytes) {
    std::erase_if(in_use_, [this](const InUse& use) {
      if (happened(use.last_use)) idle_.push_back(use.block);
      return happened(use.last_use);
    });
    const auto found =
        std::ranges::find(idle_, bytes, [](const Block* block) { return block->bytes.size(); });
    if (found == idle_.end()) {
      blocks_.push_back(std::make_unique<Block>(Block{std::vector(bytes, kPoison)}));
      return blocks_.back().get();
    }
    Block* block = *found;
    idle_.erase(found);
    return block;
  }
  void release(Block& block) {
    if (std::exchange(block.recorded, false)) {
      in_use_.push_back({&block, record(kConsumer)});
    } else {
      idle_.push_back(&block);
    }
  }

  const Options options_;
  std::mt19937 random_;
  std::array<Queue, 2> streams_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Block*> idle_;
  /// Memory that was released but is recorded as used by the consumer's stream.
  std::vector<InUse> in_use_;
  std::size_t allocations_left_ = SIZE_MAX;
  int synchronizations_ = 0;
  int waits_ = 0;
  int changed_sources_ = 0;
};

}  // namespace precast::test
