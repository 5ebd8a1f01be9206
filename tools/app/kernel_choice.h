#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/api/train_plan.h"
#include "models/detail/fused_layer_counts.h"
#include "tools/app/resolved_run.h"

namespace precast::tools {

/// Whether the model of this run uses fused kernels in the layers that they can compute: always
/// with model.kernels: fused; with auto, on a GPU on which the kernels have been tested.
[[nodiscard]] bool uses_fused_kernels(const ResolvedRun& run);

/// The effect of model.kernels in this run:
/// {"setting": "fused", "fused": 53, "reference": {}, "blurs": 6, "max_pools": 1, "stems": 1}.
/// `fused` is the number of batch norms with fused kernels. `reference` gives, for each reason, the
/// number of batch norms without fused kernels. `blurs`, `max_pools` and `stems` are the numbers of
/// other layers with fused kernels, as in models::FusedLayerCounts. With `auto`, the object also
/// contains "depends_on_gpu": true if the plan is for a GPU, this host has none, and precast was
/// built with CUDA.
/// @param norms the layers of the plan's model; read only if fused kernels are requested.
[[nodiscard]] nlohmann::ordered_json describe_kernels(const ResolvedRun& run, const TrainPlan& plan,
                                                      models::FusedLayerCounts norms);

/// The result of describe_kernels() in one line: "fused for 53 of 53 batch norms, 1 max pool, 6
/// blurs, 1 RGB convolution". If no layer uses fused kernels and model.kernels is not `fused`, the
/// line is "reference" and the reasons, if any; with "depends_on_gpu", it names both cases.
[[nodiscard]] std::string kernels_text(const nlohmann::ordered_json& kernels);

/// "fused" if any layer uses fused kernels, otherwise "reference". @param kernels
/// describe_kernels()
[[nodiscard]] std::string kernels_used(const nlohmann::ordered_json& kernels);

/// A warning if fused kernels are requested, but no layer uses them; otherwise empty.
[[nodiscard]] std::string kernels_warning(const nlohmann::ordered_json& kernels);

/// A warning for each of loss.kernels and optimizer.kernels that requests fused kernels although
/// this run cannot use them.
[[nodiscard]] std::vector<std::string> part_kernels_warnings(const ResolvedRun& run);

}  // namespace precast::tools
