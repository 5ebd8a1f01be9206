#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast bench loader FILE.beton`: measures how fast batches arrive, in images per second and
/// per CPU-second, over a sweep of settings. The settings take turns in each round, so that slow
/// minutes of the machine affect all of them.
int run_bench_loader(const std::vector<std::string>& args);

}  // namespace precast::tools
