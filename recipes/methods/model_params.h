#pragma once

#include <string>
#include <utility>
#include <vector>

#include "framework/api/train_plan.h"

namespace precast::recipes {

/// Sets options of the architecture on behalf of a method, with the same effect as `model.params`
/// in a recipe. A model reads these options through a Schema and therefore rejects unknown ones,
/// with a message that contains the method's name.
/// @param section the key under model.params. @param values keys below it with their values as
/// strings; a single entry with an empty key is the value of the section itself.
/// @throws ConfigError if the recipe already sets `section` in model.params.
void set_model_params(TrainPlan& plan, const std::string& method, const std::string& section,
                      const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace precast::recipes
