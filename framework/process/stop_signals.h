#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <span>
#include <vector>

#include "framework/core/export.h"

namespace precast {

/// While a StopSignals exists, its signals request long work to stop instead of ending the process.
/// A second SIGINT ends the process at once. A SIGHUP that the process ignores (nohup) stays
/// ignored. Only one may exist in a process at a time.
class PRECAST_API StopSignals {
 public:
  /// The signals that terminals, shells and containers send.
  static constexpr std::array kCommand = {SIGINT, SIGTERM};
  /// In addition, the signals that batch systems send before they take a machine away, and that a
  /// terminal sends when it is closed.
  static constexpr std::array kTraining = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};

  explicit StopSignals(std::span<const int> signals = kCommand);
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  /// Set by the first signal, cleared by the next StopSignals. Thread-safe.
  [[nodiscard]] static const std::atomic<bool>& requested();
  /// The exit code of a process that a signal stopped, as shells count: 128 + its number.
  [[nodiscard]] static int exit_code();

 private:
  struct Before {
    int signal;
    struct sigaction action;
  };
  std::vector<Before> before_;
};

}  // namespace precast
