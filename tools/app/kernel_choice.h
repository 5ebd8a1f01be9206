#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "framework/api/train_plan.h"
#include "models/detail/norm_kernels.h"
#include "tools/app/resolved_run.h"

namespace precast::tools {

/// The effect of model.kernels in this run:
/// {"setting": "fused", "fused": 49, "reference": {"no ReLU follows": 4}}, the number of batch
/// norms with fused kernels, and the number of others for each reason.
/// @param norms those of the plan's model; read only if fused kernels are requested.
[[nodiscard]] nlohmann::ordered_json describe_kernels(const ResolvedRun& run, const TrainPlan& plan,
                                                      models::NormKernels norms);

/// In one line: "fused for 49 of 53 batch norms (4: no ReLU follows)".
/// @param kernels from describe_kernels()
[[nodiscard]] std::string kernels_text(const nlohmann::ordered_json& kernels);

/// A warning if fused kernels are requested and no batch norm uses them; empty: there is none.
[[nodiscard]] std::string kernels_warning(const nlohmann::ordered_json& kernels);

}  // namespace precast::tools
