#pragma once

#include <string>

#include "framework/api/train_plan.h"

namespace precast::recipes {

/// Sets an option of the plan's loss on behalf of a method, with the same effect as `loss.OPTION`
/// in a recipe. @throws ConfigError if the recipe or another method sets the option to a different
/// value @{
void set_loss_option(TrainPlan& plan, const std::string& method, const std::string& option,
                     bool value);
void set_loss_option(TrainPlan& plan, const std::string& method, const std::string& option,
                     double value);
/// @}

}  // namespace precast::recipes
