#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast bench ring NAME`: measures how fast a ring delivers batches to a process that discards
/// them.
int run_bench_ring(const std::vector<std::string>& args);

}  // namespace precast::tools
