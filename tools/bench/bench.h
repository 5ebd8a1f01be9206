#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast bench WHAT`: measures performance. `loader` and `decode` run here; `step`, `stages` and
/// `allreduce` are passed to precast-train: tools/bench/.
int run_bench(const std::vector<std::string>& args);

}  // namespace precast::tools
