#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <span>
#include <vector>

#include "framework/core/export.h"

namespace precast {

/// Whether a signal that the process ignores stays ignored when a StopSignals or a SignalPipe is
/// made. SIGHUP does (nohup), and SIGTSTP. Requests to stop do not: shells start the background
/// jobs of a script with SIGINT ignored, and a program that then ignored it could not be stopped
/// cleanly.
/// @param before the action that is in place now
[[nodiscard]] PRECAST_API bool stays_ignored(int signal, const struct sigaction& before);

/// While a StopSignals exists, its signals do not end the process, but set requested(), so that a
/// long operation can stop cleanly. A second SIGINT ends the process immediately. A SIGHUP that the
/// process ignores stays ignored (stays_ignored()). Only one StopSignals may exist in a process at
/// a time.
class PRECAST_API StopSignals {
 public:
  /// The signals that terminals, shells and containers send; SIGHUP is sent when a terminal is
  /// closed.
  static constexpr std::array kCommand = {SIGINT, SIGTERM, SIGHUP};
  /// Also the signal that batch systems send before they take a machine away (SIGUSR1).
  static constexpr std::array kTraining = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

  explicit StopSignals(std::span<const int> signals = kCommand);
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  /// Set by the first signal, cleared by the next StopSignals. Thread-safe.
  [[nodiscard]] static const std::atomic<bool>& requested();
  /// The exit code for a process that a signal stopped, as in shells: 128 + the signal's number.
  [[nodiscard]] static int exit_code();

 private:
  struct Before {
    int signal;
    struct sigaction action;
  };
  std::vector<Before> before_;
};

}  // namespace precast
