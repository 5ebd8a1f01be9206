#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <span>

#include "data/ring/item.h"
#include "data/ring/signal.h"

namespace precast::data {

/// A consumer's side of the protocol (RING.md), on memory that is already mapped. Only one thread
/// may call take() and wait_for(); all other members are thread-safe.
class PRECAST_API RingReader {
 public:
  /// Borrows the memory. @param control the control area, which is written to; it may be a second
  /// mapping. @param cell, sequence from the producer's welcome. @throws RingError if they are
  /// invalid.
  RingReader(std::span<const std::byte> memory, const RingHeader& header, std::byte* control,
             std::uint32_t cell, std::uint64_t sequence);

  struct Taken {
    std::uint64_t sequence = 0;
    RingItem item;
  };
  /// Waits for the next item. Its data stays valid until release(). @return nothing if the ring has
  /// ended and all published items were taken, or after interrupt(). @throws RingError if the slot
  /// or the number of published items is invalid.
  std::optional<Taken> take();
  /// Waits until take() would return immediately, but not longer than `limit`. @return whether
  /// take() would return immediately. @throws RingError if the number of published items is
  /// invalid.
  bool wait_for(std::chrono::nanoseconds limit);
  /// Releases the item with this sequence number. It may be overwritten once all earlier items are
  /// released, too. Call once for each item that take() returned, in any order.
  void release(std::uint64_t sequence);
  /// Call when no more items will be published.
  void end();
  /// Makes the current and all later calls of take() and wait_for() return immediately.
  void interrupt();
  [[nodiscard]] bool interrupted() const { return interrupted_; }

 private:
  const std::span<const std::byte> memory_;
  const RingHeader header_;
  const RingSignal to_consumers_;
  const RingSignal to_producer_;
  std::atomic<std::uint64_t>* const released_;
  std::atomic<bool> ended_{false};
  std::atomic<bool> interrupted_{false};
  /// Protects what follows.
  std::mutex mutex_;
  std::uint64_t next_;
  std::set<std::uint64_t> held_;
};

}  // namespace precast::data
