#pragma once

#include <csignal>
#include <vector>

#include "framework/core/export.h"

namespace precast {

/// Turns signals into bytes of a pipe, so that poll() can wait for them together with other
/// descriptors. A signalfd is no alternative: every thread of the process, including the threads of
/// libraries, would have to block the signals. Only one SignalPipe may exist in a process at a
/// time.
class PRECAST_API SignalPipe {
 public:
  /// Catches `signals`, except a SIGHUP or SIGTSTP that the process ignores (stays_ignored()).
  /// Programs that are started meanwhile do not inherit that the other signals were ignored: they
  /// get the default actions.
  explicit SignalPipe(const std::vector<int>& signals);
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;
  /// Restores the previous handlers.
  ~SignalPipe();

  /// A descriptor that becomes readable when a signal arrives.
  [[nodiscard]] int fd() const;
  /// The signals received since the last call, in order.
  [[nodiscard]] std::vector<int> take();

 private:
  struct Before {
    int signal;
    struct sigaction action;
  };
  std::vector<Before> before_;
};

}  // namespace precast
