#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <vector>

#include "framework/api/communicator.h"
#include "framework/api/stateful.h"
#include "framework/engine/train_state.h"

namespace precast::engine {

// The state that differs between ranks, as it is saved in a checkpoint's ranks.safetensors: random
// generators and sums of losses.

/// Returns the state of all ranks on every rank, under names such as "<rank>.cpu_generator".
/// Collective.
[[nodiscard]] std::vector<NamedTensor> gather_rank_tensors(const TrainState& state,
                                                           Communicator& ranks, at::Device device);

/// Restores this rank's own state. A checkpoint that was saved with a different number of ranks, or
/// on a CPU while this run uses a GPU, does not contain all of this state: generators then keep
/// their current state (batches do not depend on them), and rank 0 receives the sum of all ranks'
/// losses. The sums and counts of losses are scaled so that each finished step has the same weight
/// in the epoch's mean loss as each step that this run will do.
/// @param folder the checkpoint. @param world the number of ranks that saved it. @param steps the
/// result of restore_position(). @throws CheckpointError if a tensor is missing; IoError
void restore_rank(const std::filesystem::path& folder, int world, double steps, Communicator& ranks,
                  at::Device device, TrainState& state);

}  // namespace precast::engine
