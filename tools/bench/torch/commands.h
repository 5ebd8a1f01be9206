#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `bench step [CONFIG.yaml]`: measures the training step of a recipe or, with --model-cost,
/// computes its cost.
int run_bench_step(const std::vector<std::string>& args);
/// `bench stages CONFIG.yaml`: measures how fast the data of a recipe can be read, how fast it can
/// be read and processed, and how fast the recipe trains on it and on one batch.
int run_bench_stages(const std::vector<std::string>& args);
/// `bench loader RECIPE.yaml`, which `precast` passes on under the name `bench recipe_loader`:
/// measures the loader with which a recipe trains.
int run_bench_recipe_loader(const std::vector<std::string>& args);
/// `bench allreduce`: measures how fast the ranks sum tensors, by size.
int run_bench_allreduce(const std::vector<std::string>& args);

}  // namespace precast::tools
