#pragma once

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <utility>

#include "data/outside/outside_batches.h"
#include "framework/core/error.h"

namespace precast::data {

/// How long a wait for a batch may last.
class WaitLimit {
 public:
  explicit WaitLimit(OutsideOptions options) : options_(std::move(options)) {}

  /// Starts a new wait.
  void restart() { since_ = Clock::now(); }
  [[nodiscard]] bool stopped() const { return options_.stopped && options_.stopped(); }
  /// Whether the wait must end.
  [[nodiscard]] bool reached() const { return stopped() || is_late(); }
  /// @param what `zmq://host:1: expected message 3`. @throws Error with ExitCode::stalled
  void throw_if_reached(const std::string& what) const {
    if (!is_late()) return;
    throw Error(fmt::format("{} within {} s, got none. Check that the producer runs and is not too "
                            "slow (data.producer_timeout_s)",
                            what, std::chrono::duration<double>(options_.timeout).count()),
                ExitCode::stalled);
  }

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] bool is_late() const { return Clock::now() - since_ >= options_.timeout; }

  OutsideOptions options_;
  Clock::time_point since_ = Clock::now();
};

}  // namespace precast::data
