#pragma once

#include "framework/api/communicator.h"
#include "framework/process/stop_signals.h"

namespace precast::engine {

/// Whether any rank was asked to stop (StopSignals). The result is the same on all ranks. Waits for
/// all ranks. Collective.
[[nodiscard]] inline bool any_rank_requested_stop(Communicator& ranks) {
  return ranks.begin_sum(StopSignals::requested() ? 1 : 0)->wait() > 0;
}

}  // namespace precast::engine
