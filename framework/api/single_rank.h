#pragma once

#include <memory>

#include "framework/api/communicator.h"
#include "framework/api/grad_sync.h"
#include "framework/core/export.h"

namespace precast {

/// Implementations for a run with one rank: a sum over the ranks is the rank's own value, and the
/// mean over the ranks is its own gradient.
[[nodiscard]] PRECAST_API std::unique_ptr<Communicator> make_single_rank();
[[nodiscard]] PRECAST_API std::unique_ptr<GradSync> make_single_rank_sync();

}  // namespace precast
