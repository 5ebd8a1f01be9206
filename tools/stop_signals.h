#pragma once

#include <signal.h>

#include <atomic>

namespace precast::tools {

/// While one lives, the first SIGINT or SIGTERM is a request to stop; a second one ends the process
/// at once. One at a time, on the main thread.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  /// Set by the signal; what long work looks at.
  [[nodiscard]] const std::atomic<bool>& asked() const;
  /// The exit code of a process that a signal stopped, as shells count: 128 + its number.
  [[nodiscard]] int exit_code() const;

 private:
  struct sigaction interrupt_ {};
  struct sigaction terminate_ {};
};

}  // namespace precast::tools
