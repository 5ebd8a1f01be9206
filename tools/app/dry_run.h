#pragma once

#include <cstdint>

#include "framework/launch/rank_info.h"
#include "tools/app/recipe.h"
#include "tools/app/registries.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// `precast train --dry-run`: checks the recipe and prints the plan without training. Throws the
/// error with which training would fail before its first step; if there are too few GPUs or
/// samples, after printing the plan.
/// @param train_samples without data.repeats; 0: the number is read from the dataset, if the recipe
/// names one. Without either, the plan has no steps.
/// @param options of `train`.
int dry_run(const Recipe& recipe, const Registries& registries, const RankInfo& info,
            std::int64_t train_samples, const Arguments& options);

}  // namespace precast::tools
