#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "framework/core/config/schema.h"
#include "tools/app/train_config.h"

namespace precast::tools {

/// Reports a key whose value does not fit.
using ReportKey = std::function<void(const char* key, const std::string& message)>;

/// Checks that depend on the number of ranks that train.
void check_for_ranks(const TrainConfig& config, std::int64_t ranks, const ReportKey& report_error);

/// Reports training.batch_size as ignored if training.global_batch_size replaces it, unless a
/// command line overrides a recipe's training.batch_size in this way.
/// @param recorded whether the recipe is the params.json of a run, which records both keys; only a
/// training.batch_size on the command line is then reported
void check_batch_sizes(const TrainConfig& config, bool recorded, const Schema& schema,
                       Diagnostics& diagnostics);

/// Checks the keys that need checkpoints, if no checkpoints are saved: training.on_nonfinite:
/// restore is an error, and so is checkpoint.keep_best if the recipe, or the command line, sets
/// both it and checkpoint.every_epochs. A keep_best that the command line gives for a recipe
/// without checkpoints is reported as ignored. @param recorded whether the recipe is the
/// params.json of a run, which may contain these keys
void check_checkpoints(const TrainConfig& config, bool recorded, const Schema& schema,
                       Diagnostics& diagnostics);

/// Requires that the time limits for missing data are shorter than the watchdog's. Otherwise the
/// watchdog would end the run first, with a message that does not name the cause. Call it when the
/// files of a ring are known.
/// @param has_producer whether another program makes the training batches (outside_loading.h).
void check_waits(const TrainConfig& config, bool has_producer, const Schema& schema,
                 Diagnostics& diagnostics);

/// Makes the checks that the schema cannot make, such as those that involve more than one key.
/// @param trains whether the run trains; only then is the training batch checked against the number
/// of ranks.
void check_train_config(const TrainConfig& config, const Schema& schema, bool trains,
                        Diagnostics& diagnostics);

}  // namespace precast::tools
