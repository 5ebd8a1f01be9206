#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `bench step [CONFIG.yaml]`: measures the training step of a recipe.
int run_bench_step(const std::vector<std::string>& args);
/// `bench stages CONFIG.yaml`: measures how fast a recipe's data is only read, read and processed,
/// and used for training.
int run_bench_stages(const std::vector<std::string>& args);
/// `bench loader RECIPE.yaml`, which `precast` passes on under the name `bench recipe_loader`:
/// measures the loader of a recipe's training.
int run_bench_recipe_loader(const std::vector<std::string>& args);
/// `bench allreduce`: measures how fast the ranks sum tensors, by size.
int run_bench_allreduce(const std::vector<std::string>& args);

}  // namespace precast::tools
