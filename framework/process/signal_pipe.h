#pragma once

#include <optional>
#include <vector>

#include "framework/core/export.h"
#include "framework/process/stop_signals.h"

namespace precast {

/// Turns signals into bytes of a pipe, so that poll() can wait for them together with other
/// descriptors. A signalfd is no alternative: every thread of the process, including the threads of
/// libraries, would have to block the signals. Only one SignalPipe may exist in a process at a
/// time.
class PRECAST_API SignalPipe {
 public:
  /// Catches `signals`, except a SIGHUP or SIGTSTP that the process ignores (SignalHandlers).
  /// Programs that are started while this object exists get the default actions of the caught
  /// signals, even if the process ignored these before.
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
  std::optional<SignalHandlers> handlers_;
};

}  // namespace precast
