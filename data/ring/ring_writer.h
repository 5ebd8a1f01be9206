#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "data/ring/item.h"
#include "data/ring/signal.h"

namespace precast::data {

/// The producer's side of the protocol (RING.md), on memory that is already mapped: which slots are
/// free, and which consumers it waits for. Only one thread may publish; all other members are
/// thread-safe.
class PRECAST_API RingWriter {
 public:
  /// Writes the header of an empty ring. Borrows `memory`, which must be zeroed and have the size
  /// that the header gives. The data area begins with the sample ids, with room for `batch_size`
  /// ids per slot.
  /// @throws RingError if the header is invalid.
  RingWriter(std::span<std::byte> memory, const RingHeader& header, std::uint64_t batch_size);
  /// Size in bytes of the ids at the beginning of the data area.
  [[nodiscard]] static std::uint64_t ids_bytes(std::uint64_t slots, std::uint64_t batch_size);

  /// Waits until the slot of the next item is free, then publishes it. @param owner keeps the
  /// item's data from being reused. It is released when all consumers have released the item.
  /// @return false after stop(). @throws RingError if a slot cannot describe the item, it has more
  /// than `batch_size` samples, or its position is not after the previous item's.
  bool publish(const RingItem& item, std::shared_ptr<const void> owner);
  /// Waits until there are `count` consumers, or until stop() is called. @return whether there are
  /// `count` consumers.
  bool wait_for_consumers(std::size_t count);

  /// See RingProducer. @{
  RingPosition start();
  [[nodiscard]] bool all_released();
  [[nodiscard]] std::uint64_t samples_delivered();
  /// @}

  struct Admission {
    std::uint32_t cell = 0;
    /// The consumer's first item.
    std::uint64_t sequence = 0;
  };
  /// Admits a consumer: from now on, a slot is reused only after this consumer has released it.
  /// @throws RingError if the ring has passed the consumer's position (ExitCode::usage), or all
  /// cells are taken.
  Admission admit(const RingJoin& join);
  /// Call when a consumer has left: publish() no longer waits for it.
  void leave(std::uint32_t cell);
  /// Ends the current and all later waits of publish(), which then returns false, and of
  /// wait_for_consumers().
  void stop();
  /// Releases the owners of all items. Call after the last publish().
  void drop_owners();
  [[nodiscard]] std::size_t consumers() const;

 private:
  struct Cell {
    bool taken = false;
    std::uint64_t released = 0;
    /// The position at which the consumer joined; earlier items are not delivered to it.
    RingPosition joined = {};
  };
  [[nodiscard]] std::byte* control(std::uint64_t offset) const;
  void free_released();
  [[nodiscard]] std::size_t taken_cells() const;
  [[nodiscard]] std::uint64_t first_item(const RingJoin& join) const;

  const std::span<std::byte> memory_;
  const RingHeader header_;
  const std::uint64_t batch_size_;
  const RingSignal to_consumers_;
  const RingSignal to_producer_;
  mutable std::mutex mutex_;
  bool stopped_ = false;
  std::vector<Cell> cells_;
  /// The slots of the items from `oldest_` up to, but not including, `published_` must not be
  /// reused yet.
  std::uint64_t oldest_ = 0;
  std::uint64_t published_ = 0;
  /// The earliest position that the next item can have.
  RingPosition next_;
  /// Position and number of samples of the item in each slot.
  std::vector<RingPosition> positions_;
  std::vector<std::uint64_t> samples_;
  std::uint64_t delivered_ = 0;
  std::vector<std::shared_ptr<const void>> owners_;
};

}  // namespace precast::data
