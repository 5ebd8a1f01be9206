#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast bench step|stages|allreduce`: what of `precast bench` needs libtorch.
int run_torch_bench(const std::vector<std::string>& args);

/// `bench step [CONFIG.yaml]`: how fast a recipe's training step is.
int run_bench_step(const std::vector<std::string>& args);
/// `bench stages CONFIG.yaml`: how fast a recipe's data is read, read and processed, and trained
/// on.
int run_bench_stages(const std::vector<std::string>& args);
/// `bench allreduce`: how fast the ranks sum tensors, by size.
int run_bench_allreduce(const std::vector<std::string>& args);

}  // namespace precast::tools
