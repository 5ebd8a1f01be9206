#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "data/loader/host_batch.h"
#include "data/ring/ring_position.h"
#include "framework/core/export.h"

namespace precast::data {

/// A batch that another program made.
struct OutsideBatch {
  /// The outputs point into the received memory, and can have any names, types and shapes. Sample
  /// ids may be missing.
  HostBatch host;
  /// The position that the producer assigns to the batch; nothing if the producer does not number
  /// batches.
  std::optional<RingPosition> position;
  /// The batch's name for messages, such as `zmq://localhost:5555: message 3`.
  std::string name;
};

struct OutsideOptions {
  /// The longest wait for one batch. Batches that are skipped in the meantime do not extend the
  /// wait.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  /// Called several times a second during a wait. If it returns true, begin() and next() stop
  /// waiting, and next() returns nothing.
  std::function<bool()> stopped = {};
  /// Maximum size of a ZMQ message. libzmq closes the connection of a peer that exceeds it.
  std::uint64_t max_message_bytes = std::uint64_t{1} << 30;
};

/// Batches that another program makes, in the order in which it sends them (README.md). Use an
/// object from one thread only; its batches may be released in any thread.
class PRECAST_API OutsideBatches {
 public:
  virtual ~OutsideBatches();
  /// Sets the first batch of the run and, for a ring, joins it. Call once, before next(). @param
  /// first the first batch that is needed; nothing: any batch. @throws for a ring: ConfigError if
  /// its name is invalid; IoError if there is no producer within 10 s; ProducerError if the ring
  /// cannot be joined, for example because the producer does not have that batch any more.
  virtual void begin(std::optional<RingPosition> first) = 0;
  /// Waits for the next batch. @return nothing if OutsideOptions::stopped returns true.
  /// @throws ProducerError if the producer ends, or sends something invalid; Error with
  /// ExitCode::stalled after the timeout. Do not call next() again after an exception.
  [[nodiscard]] virtual std::optional<OutsideBatch> next() = 0;
  /// Reports that the batch that next() has just returned, at position `at`, is not needed. The
  /// next call of next() continues the same wait. If that wait times out, the error names the
  /// skipped batches.
  virtual void skip(const RingPosition& at) = 0;

 protected:
  OutsideBatches() = default;
  OutsideBatches(const OutsideBatches&) = default;
  OutsideBatches& operator=(const OutsideBatches&) = default;
};

/// Whether `address` is the address of a producer: ring://NAME or zmq://...
[[nodiscard]] PRECAST_API bool is_producer_address(std::string_view address);

/// Creates an object that receives batches from `address`. A ZMQ socket is bound or connected
/// immediately, a ring is joined by begin().
/// @throws ConfigError if the address is invalid (for a ring's name, begin() throws it); IoError if
/// the socket cannot be created, bound or connected; DeviceError if libzmq, or the ZMQ support of
/// this build, is missing.
[[nodiscard]] PRECAST_API std::unique_ptr<OutsideBatches> open_outside_batches(
    const std::string& address, OutsideOptions options);

/// Checks the syntax of a zmq:// address without opening anything; accepts any other string.
/// @throws ConfigError
PRECAST_API void check_producer_address(const std::string& address);

}  // namespace precast::data
