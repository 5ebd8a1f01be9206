#pragma once

#include <cstdint>

#include "framework/launch/rank_info.h"
#include "tools/app/recipe.h"
#include "tools/app/registries.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// `precast train --dry-run`: checks the recipe and prints the plan without training. If training
/// would fail before its first step, throws the same error. If there are too few GPUs or samples,
/// it prints the plan first.
/// @param train_samples the number of training samples, without data.repeats; 0: the number in the
/// recipe's dataset. If the recipe names no dataset either, the plan has no steps.
/// @param options the options of `train`.
int dry_run(const Recipe& recipe, const Registries& registries, const RankInfo& info,
            std::int64_t train_samples, const Arguments& options);

}  // namespace precast::tools
