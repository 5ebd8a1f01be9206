#pragma once

#include <csignal>
#include <vector>

#include "framework/core/export.h"

namespace precast {

/// Signals as bytes of a pipe, so that poll() can wait for them beside other things. Handlers and a
/// pipe, not a signalfd: that would need every thread of the process to block the signals, also
/// those of libraries. One at a time in a process.
class PRECAST_API SignalPipe {
 public:
  /// Catches `signals`, but leaves alone those the process ignores (nohup, background jobs).
  explicit SignalPipe(const std::vector<int>& signals);
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;
  /// Restores the handlers that were there before.
  ~SignalPipe();

  /// Readable when signals have come.
  [[nodiscard]] int fd() const;
  /// The signals that came since the last call, in order.
  [[nodiscard]] std::vector<int> take();

 private:
  struct Before {
    int signal;
    struct sigaction action;
  };
  std::vector<Before> before_;
};

}  // namespace precast
