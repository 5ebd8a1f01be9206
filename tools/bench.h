#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast bench loader FILE.beton`: how fast batches come, in images per second and per
/// CPU-second. `bench step`, `stages` and `allreduce` are handed to precast-train: tools/bench/.
int run_bench(const std::vector<std::string>& args);

}  // namespace precast::tools
