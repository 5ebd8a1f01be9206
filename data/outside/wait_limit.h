#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "data/outside/outside_batches.h"

namespace precast::data {

/// Limits the wait for a batch, and records the batches that are skipped before the first needed
/// batch. Use an object from one thread only.
class WaitLimit {
 public:
  /// @param source the producer's name for messages, such as `zmq://host:1`.
  WaitLimit(std::string source, OutsideOptions options);

  /// Sets the first batch that is needed; earlier batches are skipped.
  void begin(std::optional<RingPosition> first) { first_ = first; }
  /// Starts a new wait.
  void restart();
  /// Records the arrival of a batch that precedes the first needed one. The wait continues. Logs
  /// the first skipped batch of a wait.
  void skip(const RingPosition& at);
  [[nodiscard]] bool stopped() const { return options_.stopped && options_.stopped(); }
  /// Whether the wait must end.
  [[nodiscard]] bool reached() const { return stopped() || timed_out(); }
  /// @param what the expected batch, such as `message 3`. @throws Error with ExitCode::stalled if
  /// the time limit is reached; the message names the skipped batches.
  void throw_if_reached(const std::string& what) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Skipped {
    std::int64_t count = 0;
    RingPosition first, last;
  };
  [[nodiscard]] bool timed_out() const { return Clock::now() - since_ >= options_.timeout; }

  std::string source_;
  OutsideOptions options_;
  std::optional<RingPosition> first_;
  Clock::time_point since_ = Clock::now();
  /// The batches that were skipped during this wait.
  Skipped skipped_;
};

}  // namespace precast::data
