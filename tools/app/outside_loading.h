#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/beton/reader.h"
#include "framework/api/batch_source.h"
#include "framework/api/train_plan.h"
#include "framework/core/config/schema.h"
#include "tools/app/resolved_run.h"

namespace precast::tools {

/// Training batches that another program makes. data.train_dataset is then zmq://..., or names a
/// ring whose description contains no datasets, and the validation set determines the fields of a
/// batch (data/outside/README.md).

/// Finds out whether the recipe names such a producer, sets Recipe::outside, and reports keys that
/// do not fit. Call it after Recipe::ring is set.
void find_outside_producer(Recipe& recipe, const Schema& schema, Diagnostics& diagnostics);

/// @throws ConfigError for more than one rank. The message names the key that requests the ranks,
/// or data.train_dataset if another program, such as torchrun, started them. @param address the
/// producer's address, for the message
void check_outside_ranks(const Recipe& recipe, const std::string& address, std::int64_t ranks);

/// The number of training samples of an epoch.
[[nodiscard]] std::int64_t outside_samples(const ResolvedRun& run);

/// The entry for these batches in the identity of a run (run_identity.h): their number per epoch.
[[nodiscard]] std::string outside_identity(const ResolvedRun& run);

/// Creates the source of training batches from the producer Recipe::outside. @param fields the
/// validation set: training batches must contain the same fields, with the same types and shapes.
/// @throws the errors of check_outside_ranks(), data::open_outside_batches(),
/// data::make_outside_spec()
[[nodiscard]] std::unique_ptr<BatchSource> make_outside_train_source(
    const data::BetonReader& fields, const ResolvedRun& run, const TrainPlan& plan);

/// An endless stream of batches of images and labels from `address`, for measurements. The epoch
/// and batch numbers that the producer sends are ignored.
[[nodiscard]] std::unique_ptr<BatchSource> make_outside_stream(const std::string& address,
                                                               const ResolvedRun& run,
                                                               const TrainPlan& plan);

}  // namespace precast::tools
