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
  /// Called several times a second while the consumer waits, and for each item that the consumer
  /// skips. If it returns true in the constructor, the constructor throws RingError; if it returns
  /// true later, the consumer acts as after interrupt().
  std::function<bool()> stopped = {};
  /// Called with the position of each batch that is skipped before the first pass.
  std::function<void(const RingPosition&)> on_skipped = {};
  /// Called once with the mapped segment, for example to page-lock it. The returned object is
  /// released before the memory is unmapped.
  std::function<std::shared_ptr<void>(std::span<const std::byte>)> on_mapped = {};
};

/// Returns the description (RING.md) of the ring `name`; empty if the ring has none. The producer
/// does not count the caller as a consumer. @throws the errors of RingConsumer's constructor.
[[nodiscard]] PRECAST_API std::string read_ring_description(const std::string& name);

/// Reads the batches of a RingProducer in another process, without a copy. A thread notices when
/// the producer ends. Use a consumer from one thread; batches may be released in any thread.
class PRECAST_API RingConsumer {
 public:
  /// Joins the ring `name`. @throws ConfigError if the name is invalid, IoError if there is no
  /// producer with this name or it does not accept the connection within 30 s, RingError if it does
  /// not reply within 30 s, does not admit this consumer, or has an invalid segment.
  RingConsumer(const std::string& name, const RingJoin& join, RingConsumerOptions options = {});
  /// Joins through `connection`, which RingProducer::connect() returned, and takes ownership of it.
  RingConsumer(int connection, const RingJoin& join, RingConsumerOptions options = {});
  RingConsumer(const RingConsumer&) = delete;
  RingConsumer& operator=(const RingConsumer&) = delete;
  /// Leaves the ring as soon as all returned batches are released.
  ~RingConsumer();

  /// Skips the rest of the current pass, and waits for the next one. The first pass begins where
  /// the RingJoin says. @return the position of the first batch of the pass; nothing if the
  /// producer has finished, and after interrupt(). @throws RingError if the producer failed or
  /// died, its items are invalid, or no item has the position of the RingJoin.
  [[nodiscard]] std::optional<RingPosition> begin_pass();
  /// Returns the next batch, or nothing at the end of the pass and after interrupt(). The batch's
  /// data is read-only (writing to it is a segmentation fault), and is valid until `memory` is
  /// released. Until then, the producer can publish only as many items as the ring has free slots.
  /// @throws the errors of begin_pass(), after which the pass is over.
  [[nodiscard]] std::optional<HostBatch> next();
  /// Whether next() would return immediately.
  [[nodiscard]] bool ready();
  /// The producer's description (RING.md), copied when the consumer joined; may be empty.
  [[nodiscard]] const std::string& description() const;
  /// Ends the current wait and all later ones. Thread-safe.
  void interrupt();

 private:
  struct HeldItem;
  class Attachment;
  [[nodiscard]] std::unique_ptr<HeldItem> take();

  std::shared_ptr<Attachment> attachment_;
  RingJoin join_;
  /// True until the first pass has begun.
  bool joining_ = true;
  bool in_pass_ = false;
  /// The next item's position in the pass, or the end of the last pass.
  RingPosition next_;
  /// The first item of a pass, until next() returns it.
  std::unique_ptr<HeldItem> pending_;
};

}  // namespace precast::data
