#pragma once

#include "framework/core/export.h"

namespace precast::engine {

/// While it lives, SIGTERM, SIGUSR1 (what batch systems send before they take a machine away) and
/// SIGINT ask the run to stop at the next step instead of ending the process; a second SIGINT ends
/// it at once. One at a time.
class PRECAST_API StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();
  /// Thread-safe.
  [[nodiscard]] static bool requested();
};

}  // namespace precast::engine
