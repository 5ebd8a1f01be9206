#pragma once

#include <nlohmann/json.hpp>

#include "framework/api/train_plan.h"
#include "tools/app/resolved_run.h"

namespace precast::tools {

/// Makes the plan of the recipe, including the methods' edits.
/// @param samples number of samples of the training set; 0: unknown, and the plan then has no
/// steps.
[[nodiscard]] TrainPlan make_plan(const ResolvedRun& run, const Registries& registries,
                                  std::int64_t samples, std::int64_t num_classes);

/// The plan as JSON. @param values the result of resolved_values(). @param per_step whether to add
/// the learning rate of every step.
[[nodiscard]] nlohmann::ordered_json describe_plan(const ResolvedRun& run, const TrainPlan& plan,
                                                   const nlohmann::ordered_json& values,
                                                   bool per_step);

}  // namespace precast::tools
