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
  /// The outputs are inside the received memory, and can have any names, types and shapes. There
  /// may be no sample ids.
  HostBatch host;
  /// The producer's number of the batch; nothing: the producer does not number batches.
  std::optional<RingPosition> position;
  /// For messages: `zmq://localhost:5555: message 3`.
  std::string name;
};

struct OutsideOptions {
  /// The longest wait for one batch, including batches that are skipped in the meantime.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  /// Called several times a second while waiting; true: next() ends.
  std::function<bool()> stopped = {};
  /// Upper limit for the size of a message. libzmq closes the connection of a peer that exceeds it.
  std::uint64_t max_message_bytes = std::uint64_t{1} << 30;
};

/// Batches that another program makes, in the order in which it sends them (README.md). Use it from
/// one thread; batches may be released in any.
class PRECAST_API OutsideBatches {
 public:
  virtual ~OutsideBatches();
  /// Starts to receive. Call it once, before next(). @param first batches before this one are not
  /// needed; nothing: any batch will do. @throws IoError if there is no producer; ProducerError if
  /// it does not have that batch any more.
  virtual void begin(std::optional<RingPosition> first) = 0;
  /// Waits for the next batch. @return nothing if OutsideOptions::stopped says so.
  /// @throws ProducerError if the producer ends, or sends something invalid; Error with
  /// ExitCode::stalled after the timeout. Do not call it again after an exception.
  [[nodiscard]] virtual std::optional<OutsideBatch> next() = 0;
  /// The batch that next() has just returned, with the position `at`, is not needed: the next call
  /// of next() continues the same wait, whose timeout names the batches that were skipped.
  virtual void skip(const RingPosition& at) = 0;

 protected:
  OutsideBatches() = default;
  OutsideBatches(const OutsideBatches&) = default;
  OutsideBatches& operator=(const OutsideBatches&) = default;
};

/// Whether `address` is that of a producer: ring://NAME or zmq://...
[[nodiscard]] PRECAST_API bool is_producer_address(std::string_view address);

/// Receives batches from `address`. A ZMQ socket is bound or connected immediately.
/// @throws ConfigError if the address is invalid; IoError if the socket cannot be bound;
/// DeviceError if libzmq is missing.
[[nodiscard]] PRECAST_API std::unique_ptr<OutsideBatches> open_outside_batches(
    const std::string& address, OutsideOptions options);

/// Checks the syntax of `address` without opening anything. @throws ConfigError
PRECAST_API void check_producer_address(const std::string& address);

}  // namespace precast::data
