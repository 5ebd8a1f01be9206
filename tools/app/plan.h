#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "framework/api/train_plan.h"
#include "tools/app/resolved_run.h"

namespace precast::tools {

/// Makes the plan of the recipe, including the changes that methods make.
/// @param samples number of samples in an epoch; 0: unknown, and the plan has no steps.
[[nodiscard]] TrainPlan make_plan(const ResolvedRun& run, const Registries& registries,
                                  std::int64_t samples, std::int64_t num_classes);

/// Why an epoch of `samples` samples of `dataset` has no step; empty if it has steps, or if
/// `samples` is 0 (unknown).
[[nodiscard]] std::string why_no_steps(const TrainPlan& plan, std::int64_t samples,
                                       const std::string& dataset);

/// The plan as JSON. @param values the result of resolved_values(). @param per_step whether to add
/// the learning rate of every step.
[[nodiscard]] nlohmann::ordered_json describe_plan(const ResolvedRun& run, const TrainPlan& plan,
                                                   const nlohmann::ordered_json& values,
                                                   bool per_step);

}  // namespace precast::tools
