#pragma once

#include <string>

#include "framework/api/train_plan.h"

namespace precast::recipes {

/// Sets an option of the plan's loss for a method, as a recipe could do in `loss`. @throws
/// ConfigError if the recipe or another method sets the option to a different value @{
void set_loss_option(TrainPlan& plan, const std::string& method, const std::string& option,
                     bool value);
void set_loss_option(TrainPlan& plan, const std::string& method, const std::string& option,
                     double value);
/// @}

}  // namespace precast::recipes
