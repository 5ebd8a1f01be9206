#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "data/outside/outside_batches.h"

namespace precast::data {

/// How long a wait for a batch may last, and which batches are skipped before the first one that is
/// needed. Use it from one thread.
class WaitLimit {
 public:
  /// @param source for messages: `zmq://host:1`
  WaitLimit(std::string source, OutsideOptions options);

  /// Batches before this one are skipped.
  void begin(std::optional<RingPosition> first) { first_ = first; }
  /// Starts a new wait.
  void restart();
  /// A batch before the first one has arrived, which does not end the wait. Logs the first one.
  void skip(const RingPosition& at);
  [[nodiscard]] bool stopped() const { return options_.stopped && options_.stopped(); }
  /// Whether the wait must end.
  [[nodiscard]] bool reached() const { return stopped() || is_late(); }
  /// @param what `message 3`. @throws Error with ExitCode::stalled, which names what was skipped
  void throw_if_reached(const std::string& what) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Skipped {
    std::int64_t count = 0;
    RingPosition first, last;
  };
  [[nodiscard]] bool is_late() const { return Clock::now() - since_ >= options_.timeout; }

  std::string source_;
  OutsideOptions options_;
  std::optional<RingPosition> first_;
  Clock::time_point since_ = Clock::now();
  /// During this wait.
  Skipped skipped_;
};

}  // namespace precast::data
