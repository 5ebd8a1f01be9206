#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "data/ring/shared_loader.h"
#include "framework/api/train_plan.h"
#include "framework/core/config/node.h"
#include "tools/app/resolved_run.h"
#include "tools/app/ring_dataset.h"
#include "tools/app/session.h"

namespace precast::tools {

/// Describes what a run loads for training: every value that determines the content of its batches.
/// `precast serve` writes it into its ring (data/ring/README.md).
[[nodiscard]] nlohmann::ordered_json describe_loading(const data::BetonReader& reader,
                                                      const TrainData& data, const ResolvedRun& run,
                                                      const TrainPlan& plan);

/// The description as it is written into a ring. Bytes of paths that are not UTF-8 become
/// replacement characters.
[[nodiscard]] std::string loading_text(const nlohmann::ordered_json& loading);

/// A value in which two descriptions of loading differ.
struct LoadingDifference {
  /// The recipe's key.
  std::string key;
  /// `expected 8, got 16`.
  std::string text;
};
/// @param there the description of a ring. Paths are not compared, but the contents of the datasets
/// are.
[[nodiscard]] std::vector<LoadingDifference> compare_loading(const nlohmann::ordered_json& there,
                                                             const nlohmann::ordered_json& here);

/// Sets the run's ring to `name`, the value of --ring. @throws ConfigError if another program makes
/// the training batches
void use_ring(const std::string& name, ResolvedRun& run);

/// The ring from which a run takes its training batches: the ring of data.train_dataset:
/// ring://NAME, else the ring of --ring if it loads the same batches or does not exist yet, else
/// none.
/// @throws ConfigError naming every key in which the run differs from a ring that its recipe names,
/// or if such a run has several ranks.
[[nodiscard]] data::SharedRing shared_ring(const data::BetonReader& reader, const TrainData& data,
                                           const ResolvedRun& run, const TrainPlan& plan);

}  // namespace precast::tools
