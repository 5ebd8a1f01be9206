#pragma once

#include "tools/app/recipe.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// `bench step --model-cost`: computes the cost of a step of the recipe with a cost model, for each
/// image size of its plan. Runs the network on the CPU with very small batches; needs no GPU.
/// @param recipe for GPUs; the function changes its device, precision and batch size.
/// @param classes number of classes of the model. @param options --card, --json, --output
/// @throws ConfigError if the recipe turns channels_last off, uses bf16 with a card that lacks it,
/// has a method that changes the work of a step during the run, or runs other ops in each step
int run_model_cost(Recipe& recipe, const Registries& registries, std::int64_t classes,
                   const Arguments& options);

}  // namespace precast::tools
