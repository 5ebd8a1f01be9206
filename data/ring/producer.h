#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "data/loader/buffer_pool.h"
#include "data/loader/host_batch.h"
#include "data/ring/ring_position.h"
#include "framework/core/error.h"
#include "framework/core/export.h"

namespace precast::data {

struct RingOptions {
  /// The name under which consumers join. Empty: they can join only through
  /// RingProducer::connect().
  std::string name;
  /// The number of items (batches and ends of passes) by which the fastest consumer can be ahead of
  /// the slowest.
  int slots = 4;
  /// Maximum number of samples in a batch.
  std::int64_t batch_size = 0;
  /// Size of a batch in bytes (BatchLayout::bytes()).
  std::size_t batch_bytes = 0;
  /// The number of batches that the ring has memory for: `slots`, plus 1 for the batch that is
  /// passed to publish(), plus those that the loader fills (batches_ahead).
  int buffers = 0;
  /// The description of RING.md: a JSON object, or empty.
  std::string description = {};
};

/// Creates a ring and publishes batches to consumers in other processes (RING.md). A thread admits
/// consumers and notices when they leave. Only one thread may publish; all other members are
/// thread-safe.
class PRECAST_API RingProducer {
 public:
  /// @throws ConfigError for invalid options, IoError if another producer has the name or there is
  /// not enough memory.
  explicit RingProducer(const RingOptions& options);
  RingProducer(const RingProducer&) = delete;
  RingProducer& operator=(const RingProducer&) = delete;
  /// If neither finish() nor fail() was called, consumers end with an error. Destroy the loader
  /// before the producer: otherwise, the loader could reuse the memory of batches that consumers
  /// still read.
  ~RingProducer();

  /// Returns an allocator of memory inside the ring, for LoaderOptions::allocator: batches are
  /// decoded where consumers read them. The allocator may outlive the producer. It throws
  /// std::logic_error if all buffers are in use, or for a batch that is larger than `batch_bytes`.
  [[nodiscard]] BufferAllocator allocator() const;

  /// Publishes batch `number` of `epoch`. Waits first until all consumers have released the item
  /// that is `slots` items earlier. Keeps `batch.memory` until all consumers have released it.
  /// @return false after interrupt(). @throws RingError if the batch is not in allocator()'s
  /// memory, is not after the previous item, or exceeds `batch_size` or the limits of RING.md.
  bool publish(std::int64_t epoch, std::int64_t number, const HostBatch& batch);
  /// Publishes the end of a pass. @param batches the number of the batch after the last one,
  /// counted from the start of the epoch even if the pass began later. @return false after
  /// interrupt().
  bool end_pass(std::int64_t epoch, std::int64_t batches);
  /// Waits until there are `count` consumers. @return false after interrupt().
  bool wait_for_consumers(int count);
  /// Call before the first item is published. @return the earliest position at which a consumer has
  /// joined; {0, 0} if there is no consumer. From then on, consumers cannot join at an earlier
  /// position.
  RingPosition start();
  /// Call after the last item: consumers end when they have read all items. @{
  void finish();
  /// Like finish(), but consumers end with this error.
  void fail(const Error& error);
  /// @}
  /// Ends the current wait and all later waits of the publishing thread.
  void interrupt();

  [[nodiscard]] int consumers() const;
  /// Whether all consumers have released all items.
  [[nodiscard]] bool all_released();
  /// The number of samples in all batches that consumers have released so far; a batch that two
  /// consumers have read counts twice. Batches before the position at which a consumer joined do
  /// not count for that consumer.
  [[nodiscard]] std::uint64_t samples_delivered();
  /// Returns a connected socket for a consumer. The caller owns the socket: either pass it to a
  /// child process and close it here, or pass it to a RingConsumer, which takes ownership.
  /// @throws IoError
  [[nodiscard]] int connect();

 private:
  class Service;
  struct Memory;
  std::shared_ptr<Memory> memory_;
  std::unique_ptr<Service> service_;
};

}  // namespace precast::data
