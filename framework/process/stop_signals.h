#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "framework/core/export.h"

namespace precast {

/// Sets the action of signals; the destructor restores the previous actions. A SIGHUP (nohup) or
/// SIGTSTP that the process ignores stays ignored. Other signals are handled even if they were
/// ignored before: shells start the background jobs of a script with SIGINT ignored, and such a job
/// could not be stopped cleanly.
class PRECAST_API SignalHandlers {
 public:
  SignalHandlers(std::span<const int> signals, const struct sigaction& action);
  SignalHandlers(const SignalHandlers&) = delete;
  SignalHandlers& operator=(const SignalHandlers&) = delete;
  ~SignalHandlers();

 private:
  std::vector<std::pair<int, struct sigaction>> saved_actions_;
};

/// While a StopSignals exists, its signals do not end the process, but set requested(), so that a
/// long operation can stop cleanly. A second SIGINT ends the process immediately. A SIGHUP that the
/// process ignores stays ignored (SignalHandlers). Only one StopSignals may exist in a process at
/// a time.
class PRECAST_API StopSignals {
 public:
  /// The signals that terminals, shells and containers send; SIGHUP is sent when a terminal is
  /// closed.
  static constexpr std::array kCommand = {SIGINT, SIGTERM, SIGHUP};
  /// kCommand and SIGUSR1, which batch systems send before they end a job.
  static constexpr std::array kTraining = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

  explicit StopSignals(std::span<const int> signals = kCommand);
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Set by the first signal, cleared by the next StopSignals. Thread-safe.
  [[nodiscard]] static const std::atomic<bool>& requested();
  /// The exit code for a process that a signal stopped, as in shells: 128 + the signal's number.
  [[nodiscard]] static int exit_code();

 private:
  std::optional<SignalHandlers> handlers_;
};

}  // namespace precast
