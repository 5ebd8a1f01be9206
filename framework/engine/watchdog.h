#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "framework/core/export.h"

namespace precast::engine {

/// Ends a run that makes no progress, for example because of a dead network file system, a hung
/// driver or a deadlock. If there is no tick for `limit`, it prints the run's last position, the
/// result of `describe` and the stack of every thread, and ends the process with ExitCode::stalled.
class PRECAST_API Watchdog {
 public:
  /// @param describe returns queue depths and similar facts for the message; called on the
  /// watchdog's thread.
  /// @param on_stall called with the message before the process ends, to report the cause to the
  /// other ranks.
  Watchdog(std::chrono::seconds limit, std::function<std::string()> describe,
           std::function<void(const std::string&)> on_stall);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();
  /// Reports progress. @param position the run's position, for the message.
  void tick(std::string position);

 private:
  void watch(const std::stop_token& stop);
  [[noreturn]] void end_process(const std::string& position);

  std::chrono::seconds limit_;
  std::function<std::string()> describe_;
  std::function<void(const std::string&)> on_stall_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::chrono::steady_clock::time_point last_tick_;
  std::string position_;
  std::jthread thread_;
};

}  // namespace precast::engine
