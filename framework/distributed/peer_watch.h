#pragma once

#include <chrono>
#include <cstdint>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "framework/core/export.h"

namespace precast::distributed {

/// Sends this rank's heartbeat and reads those of the ranks that it watches. With the ranks
/// arranged in a circle, a rank watches the next kWatched ones that have not finished. If
/// neighbouring ranks die together, as those of a host do, the rank before them watches the first
/// of them. Because a rank watches only a few others, the number of requests to the store is
/// proportional to the number of ranks. As with c10d_parts.h, only the sources and tests of this
/// folder include this header. Not thread-safe.
class PRECAST_API PeerWatch {
 public:
  using Clock = std::chrono::steady_clock;
  /// The number of ranks that each rank watches. It is above 1, so that a dead rank is noticed even
  /// if the rank before it has died, too.
  static constexpr int kWatched = 4;

  PeerWatch(c10d::Store& store, int rank, int world);
  /// Signals that this rank is alive.
  void beat();
  /// Signals that this rank has finished, so that its silence no longer counts.
  void finish();
  [[nodiscard]] bool has_finished(int rank);
  /// Reads the heartbeats of the watched ranks. @return a rank without a heartbeat for longer than
  /// `timeout`, or -1
  [[nodiscard]] int silent_rank(std::chrono::milliseconds timeout, Clock::time_point now);
  /// Ignores the silence before `now`.
  void reset_silence(Clock::time_point now);

 private:
  struct Beat {
    std::int64_t count = 0;
    Clock::time_point seen = Clock::now();
  };

  c10d::Store& store_;
  int rank_;
  std::vector<Beat> beats_;
};

}  // namespace precast::distributed
