#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "framework/api/model.h"
#include "framework/api/train_plan.h"

namespace precast::tools {

/// What identifies a run: the configuration, the datasets, the parameters, the libraries. The ranks
/// compare theirs at the start; a resumed run compares its own with the checkpoint's.
/// @param values resolved_values().
[[nodiscard]] nlohmann::ordered_json describe_identity(const nlohmann::ordered_json& values,
                                                       const TrainPlan& plan,
                                                       const data::BetonReader& train,
                                                       const data::BetonReader& val,
                                                       const Model& model);

/// The values that differ, one line each: `training.epochs: 16 there, 18 here`.
[[nodiscard]] std::vector<std::string> compare_identities(const nlohmann::ordered_json& there,
                                                          const nlohmann::ordered_json& here);

/// The part of an identity that must not change when a run resumes: all but the values that only
/// affect where and how fast it runs (paths, threads, logging, checkpoints, number of ranks,
/// library versions).
[[nodiscard]] nlohmann::ordered_json resumable_part(const nlohmann::ordered_json& identity);

}  // namespace precast::tools
