#pragma once

#include <cstdint>

#include "framework/launch/rank_info.h"
#include "tools/app/recipe.h"
#include "tools/app/registries.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// `precast train --dry-run`: checks the recipe and the datasets and prints the plan, without
/// training. If a check fails, throws the error that a training run would throw; if there are too
/// few GPUs or samples, prints the plan first. A host without GPUs may print the plan for another
/// host's GPU.
/// @param train_samples the number of training samples, without data.repeats; 0: the number in the
/// recipe's dataset, or from its producer. If the recipe names neither, the plan has no steps.
/// @param options the options of `train`.
int dry_run(const Recipe& recipe, const Registries& registries, const RankInfo& info,
            std::int64_t train_samples, const Arguments& options);

}  // namespace precast::tools
