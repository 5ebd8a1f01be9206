#include "framework/engine/compute_threads.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "framework/core/log.h"

namespace precast::engine {

std::vector<int> gather_compute_threads(Communicator& ranks) {
  std::vector<int> all;
  for (const std::string& text : ranks.all_gather(std::to_string(at::get_num_threads())))
    all.push_back(std::stoi(text));
  return all;
}

void restore_compute_threads(const std::vector<int>& saved, int most, Communicator& ranks) {
  if (saved.size() != static_cast<std::size_t>(ranks.world())) return;
  const int mine = saved[static_cast<std::size_t>(ranks.rank())];
  if (mine >= 1 && mine <= most && mine != at::get_num_threads()) at::set_num_threads(mine);
  const std::vector<int> now = gather_compute_threads(ranks);
  const auto [before, here] = std::mismatch(saved.begin(), saved.end(), now.begin());
  if (before == saved.end() || ranks.rank() != 0) return;
  log_warning(
      "compute threads: expected {} on rank {}, as in the checkpoint, got {}. The last bits of the "
      "results will differ from those of an uninterrupted run. To prevent this, resume with "
      "OMP_NUM_THREADS={}",
      *before, before - saved.begin(), *here, *before);
}

}  // namespace precast::engine
