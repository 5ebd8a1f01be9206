#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "framework/api/communicator.h"
#include "framework/api/model.h"
#include "framework/api/train_plan.h"
#include "tools/app/train_config.h"

namespace precast::tools {

/// The run's id: logging.run_id. If that is empty, a run with checkpoint.resume gets the id
/// `slurm-JOB` of its Slurm job, which stays the same when the job is requeued. Any other run has
/// no id yet: the result is empty, and the run gets a new name. @throws ConfigError if
/// checkpoint.resume needs an id and there is none
[[nodiscard]] std::string run_id_of(const TrainConfig& config);

/// The identity of a run: configuration, datasets, parameters and libraries. The ranks compare
/// their identities at the start; a resumed run compares its identity with that of the checkpoint.
/// @param values resolved_values().
[[nodiscard]] nlohmann::ordered_json describe_identity(const nlohmann::ordered_json& values,
                                                       const TrainPlan& plan,
                                                       const data::BetonReader& train,
                                                       const data::BetonReader& val,
                                                       const Model& model);
/// The identity of an evaluation: configuration, weights and libraries.
[[nodiscard]] nlohmann::ordered_json describe_identity(const nlohmann::ordered_json& values,
                                                       const Model& model);

/// The entry for a dataset in an identity: for each file, in order, the number of samples, the size
/// in bytes and a hash of the metadata.
[[nodiscard]] nlohmann::ordered_json describe_dataset(const data::BetonReader& reader);
/// The entry for data.subset in an identity: data::subset_identity().
[[nodiscard]] nlohmann::ordered_json describe_subset(const nlohmann::ordered_json& subset,
                                                     const data::BetonReader& train);

/// The values that differ, one line each: `training.epochs: 16 there, 18 here`.
[[nodiscard]] std::vector<std::string> compare_identities(const nlohmann::ordered_json& there,
                                                          const nlohmann::ordered_json& here);

/// Whether the epochs of two runs were evaluated on the same data with the same settings, so that
/// the values of a metric are comparable.
[[nodiscard]] bool has_same_evaluation(const nlohmann::ordered_json& there,
                                       const nlohmann::ordered_json& here);

/// Compares the identities of all ranks. Collective. @throws ConfigError on every rank, with the
/// values that differ
void check_same_identity(Communicator& ranks, const nlohmann::ordered_json& identity);

/// The part of an identity that must not change when a run resumes: all but values such as paths,
/// threads, logging, checkpoints, metrics, number of ranks and library versions.
[[nodiscard]] nlohmann::ordered_json resumable_part(const nlohmann::ordered_json& identity);

}  // namespace precast::tools
