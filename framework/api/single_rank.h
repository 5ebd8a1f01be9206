#pragma once

#include <memory>

#include "framework/api/communicator.h"
#include "framework/api/grad_sync.h"
#include "framework/core/export.h"

namespace precast {

/// Implementations for a run of one rank: each sum is the rank's own value, and its gradients are
/// already the mean.
[[nodiscard]] PRECAST_API std::unique_ptr<Communicator> make_single_rank();
[[nodiscard]] PRECAST_API std::unique_ptr<GradSync> make_single_rank_sync();

}  // namespace precast
