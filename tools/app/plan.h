#pragma once

#include <nlohmann/json.hpp>

#include "framework/api/train_plan.h"
#include "tools/app/resolved_run.h"

namespace precast::tools {

/// Makes the plan of the recipe for a training set of `samples` samples, after the methods have
/// edited it.
/// @param samples 0: unknown; the plan then has no steps.
[[nodiscard]] TrainPlan make_plan(const ResolvedRun& run, const Registries& registries,
                                  std::int64_t samples, std::int64_t num_classes);

/// The plan as JSON. @param values resolved_values(). @param per_step adds the learning rate of
/// every step.
[[nodiscard]] nlohmann::ordered_json describe_plan(const ResolvedRun& run, const TrainPlan& plan,
                                                   const nlohmann::ordered_json& values,
                                                   bool per_step);

}  // namespace precast::tools
