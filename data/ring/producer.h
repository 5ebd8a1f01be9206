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
  /// Batches by which the fastest consumer can be ahead of the slowest.
  int slots = 4;
  /// Maximum number of samples in a batch.
  std::int64_t batch_size = 0;
  /// Memory of a batch (BatchLayout::bytes()), and how many batches there is memory for: `slots`,
  /// the one that is passed to publish(), and those that the loader fills (batches_ahead).
  std::size_t batch_bytes = 0;
  int buffers = 0;
  /// The description of RING.md: a JSON object, or empty.
  std::string description = {};
};

/// Makes a ring and gives its batches to consumers in other processes (RING.md). A thread admits
/// consumers and notices when one has ended. Only one thread may publish; all other members are
/// thread-safe.
class PRECAST_API RingProducer {
 public:
  /// @throws ConfigError for invalid options, IoError if another producer has the name or there is
  /// not enough memory.
  explicit RingProducer(const RingOptions& options);
  RingProducer(const RingProducer&) = delete;
  RingProducer& operator=(const RingProducer&) = delete;
  /// Without finish() or fail(), consumers end with an error. Destroy the loader first: afterwards,
  /// the memory of batches that consumers still read could be reused.
  ~RingProducer();

  /// Memory inside the ring, for LoaderOptions::allocator: batches are decoded where consumers
  /// read them. It may outlive the producer. allocate() throws std::logic_error if all buffers are
  /// in use, or for a batch that is larger than `batch_bytes`.
  [[nodiscard]] BufferAllocator allocator() const;

  /// Publishes batch `batch` of `epoch`, once all consumers have released the batch `slots` before
  /// it. Keeps `batch.memory` until all consumers have released it. @return false after
  /// interrupt(). @throws RingError if the batch is not in allocator()'s memory, or a consumer
  /// could not describe it (limits: RING.md).
  bool publish(std::int64_t epoch, std::int64_t number, const HostBatch& batch);
  /// The pass ends after `batches` batches, counted from the start of the epoch.
  bool end_pass(std::int64_t epoch, std::int64_t batches);
  /// Waits until there are `count` consumers. @return false after interrupt().
  bool wait_for_consumers(int count);
  /// Before the first item: the earliest position at which a consumer waits, {0, 0} if there is
  /// none. Consumers that join later must not join before it.
  RingPosition start();
  /// There will be no more items: consumers end when they have read all. @{
  void finish();
  /// Like finish(), but consumers end with this error.
  void fail(const Error& error);
  /// @}
  /// Ends the waits of the publishing thread, now and from then on.
  void interrupt();

  [[nodiscard]] int consumers() const;
  /// Whether all consumers have released all items.
  [[nodiscard]] bool all_released();
  /// Samples of the batches that consumers have released so far, without those before the position
  /// that each asked for: a batch that two consumers have read counts twice.
  [[nodiscard]] std::uint64_t samples_delivered();
  /// A connection for a consumer: this process passes it to a child, or to RingConsumer in another
  /// thread, and closes it. @throws IoError
  [[nodiscard]] int connect();

 private:
  class Service;
  struct Memory;
  std::shared_ptr<Memory> memory_;
  std::unique_ptr<Service> service_;
};

}  // namespace precast::data
