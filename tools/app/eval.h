#pragma once

#include <string>
#include <vector>

#include "tools/app/recipe.h"
#include "tools/app/result_file.h"
#include "tools/app/run_argument.h"

namespace precast::tools {

/// `precast eval CONFIG.yaml --model.weights=F`, or `precast eval RUN`: evaluates weights on the
/// validation set.
int run_eval(const std::vector<std::string>& args);
/// run_eval() for a recipe that has already been read (`training.eval_only`).
/// @param command the command line for ranks that it starts, without the program's name.
/// @param run_argument the argument from which the recipe was read. @param file if not null, rank 0
/// adds its results to it, with the names used in summary.json. If this process starts the ranks,
/// rank 0 is another process (see ResultFile::take_over()).
int evaluate_recipe(const Recipe& recipe, const Registries& registries,
                    const std::vector<std::string>& command, bool json,
                    const RunArgument& run_argument = {}, ResultFile* file = nullptr);

}  // namespace precast::tools
