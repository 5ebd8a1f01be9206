#pragma once

#include <string>
#include <vector>

#include "tools/app/recipe.h"
#include "tools/app/run_argument.h"

namespace precast::tools {

/// `precast eval CONFIG.yaml --model.weights=F`, or `precast eval RUN`: evaluates weights on the
/// validation set.
int run_eval(const std::vector<std::string>& args);
/// run_eval() for a recipe that has already been read (`training.eval_only`).
/// @param command the arguments after the program's name, to start ranks with.
/// @param used the argument from which the recipe was read.
int evaluate_recipe(const Recipe& recipe, const Registries& registries,
                    const std::vector<std::string>& command, bool json,
                    const RunArgument& used = {});

}  // namespace precast::tools
