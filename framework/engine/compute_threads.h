#pragma once

#include <vector>

#include "framework/api/communicator.h"
#include "framework/core/export.h"

namespace precast::engine {

/// The number of libtorch's compute threads (at::get_num_threads()) of each rank. On CPUs, the
/// order of additions, and so the last bits of the results, depend on it. Collective.
[[nodiscard]] PRECAST_API std::vector<int> gather_compute_threads(Communicator& ranks);

/// For a resumed run on CPUs: sets this rank's number of compute threads to the saved number, if
/// that is at most `most`. If the number still differs on any rank, rank 0 logs a warning. Does
/// nothing if the number of ranks has changed. Collective. @param saved the number of compute
/// threads of each rank, from the checkpoint.
PRECAST_API void restore_compute_threads(const std::vector<int>& saved, int most,
                                         Communicator& ranks);

}  // namespace precast::engine
