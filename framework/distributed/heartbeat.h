#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "framework/core/export.h"
#include "framework/distributed/process_group.h"

namespace precast::distributed {

struct HeartbeatOptions {
  std::chrono::milliseconds period{5'000};
  /// A rank that misses this many consecutive beats counts as dead.
  int missed = 4;
  /// If a call to the store takes longer, the store's host counts as dead.
  std::chrono::milliseconds store_timeout{10'000};
};

/// Signals to the other ranks that this rank is alive, detects ranks that have died, and agrees
/// with the other ranks on the first cause of a failure, so that the cause is reported only once.
/// Uses its own connection to the store and its own thread, because the main thread may hang in a
/// collective with a dead peer.
class PRECAST_API Heartbeat {
 public:
  /// Called on the heartbeat's thread when the run cannot continue: another rank is silent or has
  /// failed, or the store cannot be reached. The function must end the process.
  /// @param cause the reason; if another rank (or the launcher) has claimed the failure, the cause
  /// in its claim, as in claimed_cause(). @param reported_elsewhere whether another rank or the
  /// launcher reports the cause
  using OnFailure = std::function<void(const std::string& cause, bool reported_elsewhere)>;

  /// @throws DeviceError if the store cannot be reached.
  Heartbeat(const GroupOptions& group, OnFailure on_failure, HeartbeatOptions options = {});
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  /// Announces that this rank has finished, so that its silence no longer counts as death. The rank
  /// that serves the store then waits for the other ranks, at most `store_timeout`.
  ~Heartbeat();

  /// Claims the run's failure: records `cause` in the store, unless there is a claim already.
  /// Thread-safe.
  /// @return whether this claim is the first; if not, another rank's cause is reported. Also true
  /// if the store cannot be reached.
  bool claim_failure(const std::string& cause);
  /// The cause in the first claim, with the prefix `[rank N] ` or `[launcher] `; empty if there is
  /// no claim or the store cannot be reached. Thread-safe.
  [[nodiscard]] std::string claimed_cause();
  /// Waits for another rank's claim, at most for the time that it takes to detect a silent rank.
  /// This is needed because collectives over Gloo fail immediately when a peer dies, while the
  /// cause becomes known only later.
  /// @return whether another rank reports the failure
  bool wait_for_claim();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// The store that a launcher serves for the ranks that it starts. With it, the launcher can also
/// claim the failure on behalf of a rank that has died.
class PRECAST_API StoreHost {
 public:
  /// Serves a store on a free port of `host`. @throws DeviceError if that fails.
  explicit StoreHost(const std::string& host);
  StoreHost(const StoreHost&) = delete;
  StoreHost& operator=(const StoreHost&) = delete;
  ~StoreHost();
  [[nodiscard]] int port() const;
  /// @return whether this claim is the first
  bool claim_failure(const std::string& cause);

 private:
  struct Server;
  std::unique_ptr<Server> server_;
};

}  // namespace precast::distributed
