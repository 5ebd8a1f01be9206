#pragma once

#include <string>
#include <vector>

#include "tools/app/recipe.h"

namespace precast::tools {

/// `precast eval CONFIG.yaml --model.weights=F`: accuracy of weights on the validation set.
int run_eval(const std::vector<std::string>& args);
/// The same for a recipe that has already been read (`training.eval_only`).
int evaluate_recipe(const Recipe& recipe, const Registries& registries, bool json);

}  // namespace precast::tools
