#pragma once

#include <memory>

#include "framework/api/communicator.h"
#include "framework/api/grad_sync.h"
#include "framework/core/export.h"

namespace precast {

/// A run of one rank: every sum is its own, and its gradients are the mean already.
[[nodiscard]] PRECAST_API std::unique_ptr<Communicator> make_single_rank();
[[nodiscard]] PRECAST_API std::unique_ptr<GradSync> make_single_rank_sync();

}  // namespace precast
