#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tools/bench/cost/op_cost.h"

namespace precast::tools {

/// The ops of a training step, for a batch of any size.
struct StepTrace {
  std::vector<TracedOp> ops;
  /// Ops without a rule in op_kinds.cpp, and their calls per step. Their work is not counted.
  std::map<std::string, int> uncounted;
};

/// Runs `step` on a CPU, in the calling thread, with two small batches (after a first step that is
/// not recorded), and records the ops that libtorch dispatches, including the backward pass. The
/// tensors' sizes are linear in the batch size, so two traces determine them for `batch_size`.
/// @param step runs one training step with a batch of this number of samples.
/// @param unit the two batches have 2 * unit and 3 * unit samples.
/// @throws ConfigError if the two steps do not run the same ops, as with mixup_or_cutmix.
[[nodiscard]] StepTrace trace_step(const std::function<void(std::int64_t)>& step, std::int64_t unit,
                                   std::int64_t batch_size);

}  // namespace precast::tools
