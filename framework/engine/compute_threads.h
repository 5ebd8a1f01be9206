#pragma once

#include <vector>

#include "framework/api/communicator.h"
#include "framework/core/export.h"

namespace precast::engine {

/// The number of libtorch's compute threads (at::get_num_threads()) of each rank. On CPUs, the
/// order of additions, and so the last bits of the results, depend on it. Collective.
[[nodiscard]] PRECAST_API std::vector<int> gather_compute_threads(Communicator& ranks);

/// For a run on CPUs that continues: gives this rank the number of compute threads that it had
/// before, if that is at most `most`. If a rank keeps another number, rank 0 logs a warning.
/// Collective.
/// @param saved the number of each rank before; nothing is done if there were more ranks or fewer.
PRECAST_API void restore_compute_threads(const std::vector<int>& saved, int most,
                                         Communicator& ranks);

}  // namespace precast::engine
