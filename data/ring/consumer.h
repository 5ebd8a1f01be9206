#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "data/loader/host_batch.h"
#include "data/ring/ring_position.h"
#include "framework/core/export.h"

namespace precast::data {

/// Optional settings of a RingConsumer.
struct RingConsumerOptions {
  /// Called several times a second while the consumer waits. true: the wait ends, as after
  /// interrupt().
  std::function<bool()> stopped = {};
  /// Called with the position of each batch that is skipped before the first pass.
  std::function<void(const RingPosition&)> on_skipped = {};
  /// Called once with the mapped segment, for example to page-lock it; what it returns is released
  /// before the memory is unmapped.
  std::function<std::shared_ptr<void>(std::span<const std::byte>)> on_mapped = {};
};

/// The description (RING.md) of the ring with that name; empty if it has none. The producer does
/// not count this as a consumer. @throws as RingConsumer
[[nodiscard]] PRECAST_API std::string read_ring_description(const std::string& name);

/// Reads the batches of a RingProducer in another process, without a copy. A thread waits for the
/// end of the producer. Use a consumer from one thread; batches may be released in any.
class PRECAST_API RingConsumer {
 public:
  /// Joins the ring with that name. @throws ConfigError if the name is invalid, IoError if there is
  /// no such producer, RingError if it does not admit this consumer or its segment is invalid.
  RingConsumer(const std::string& name, const RingJoin& join, RingConsumerOptions options = {});
  /// Takes over what RingProducer::connect() returned.
  RingConsumer(int connection, const RingJoin& join, RingConsumerOptions options = {});
  RingConsumer(const RingConsumer&) = delete;
  RingConsumer& operator=(const RingConsumer&) = delete;
  /// Leaves the ring once all its batches are released.
  ~RingConsumer();

  /// Skips the rest of the pass, and waits for the next one; the first is that of the RingJoin.
  /// @return the position of its first batch; nothing if the producer has finished, and after
  /// interrupt(). @throws RingError if the producer failed or died, or its items are invalid.
  [[nodiscard]] std::optional<RingPosition> begin_pass();
  /// Returns the next batch, or nothing at the end of the pass and after interrupt(). The batch's
  /// data is read-only (writing to it is a segmentation fault), and stays until `memory` is
  /// released; while a batch is kept, the producer can publish only as many as the ring has slots.
  /// @throws RingError as begin_pass(); the pass is then over.
  [[nodiscard]] std::optional<HostBatch> next();
  /// Whether next() would return at once.
  [[nodiscard]] bool ready();
  /// The producer's description (RING.md), copied when the consumer joined; may be empty.
  [[nodiscard]] const std::string& description() const;
  /// Ends waits, now and from then on. Thread-safe.
  void interrupt();

 private:
  struct Pending;
  class Attachment;
  [[nodiscard]] std::unique_ptr<Pending> take();

  std::shared_ptr<Attachment> attachment_;
  RingJoin join_;
  /// Before the first pass.
  bool joining_ = true;
  bool in_pass_ = false;
  /// The next item's position in the pass, or the end of the last pass.
  RingPosition next_;
  /// The first item of a pass, until next() returns it.
  std::unique_ptr<Pending> pending_;
};

}  // namespace precast::data
