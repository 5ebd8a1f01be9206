#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "framework/api/train_plan.h"
#include "framework/engine/graph_choice.h"
#include "tools/app/resolved_run.h"

namespace precast::tools {

/// The value of training.cuda_graphs.
[[nodiscard]] engine::GraphMode graph_mode(const TrainConfig& config);

/// The effect of training.cuda_graphs in this run:
/// {"setting": "step", "records": "passes", "obstacles": ["sam replaces ..."]}; `records` is none,
/// passes or step. If the setting is `step`, `obstacles` are the reasons why the whole step is not
/// recorded.
[[nodiscard]] nlohmann::ordered_json describe_graphs(const ResolvedRun& run, const TrainPlan& plan,
                                                     const Registries& registries);

/// The result of describe_graphs() in one line: "step: the forward and backward passes, not the
/// whole step: sam replaces ...".
[[nodiscard]] std::string graphs_text(const nlohmann::ordered_json& graphs);

}  // namespace precast::tools
