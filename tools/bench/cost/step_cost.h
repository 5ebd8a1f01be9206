#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/bench/cost/op_cost.h"

namespace precast::tools {

/// The costs of all ops of a step.
using StepCost = std::vector<OpCost>;

/// Returns the costs of the step in eager PyTorch.
[[nodiscard]] StepCost reference_cost(const std::vector<TracedOp>& ops, CostPrecision precision);

/// Returns the costs of the step with the kernels that `model.kernels: fused` uses in a ResNet
/// (models/README.md). The bytes come from models/cuda/bytes_moved.h; fused_cost.cpp lists the ops
/// that are replaced.
[[nodiscard]] StepCost fused_cost(const StepCost& reference, CostPrecision precision);

/// Sums over ops.
struct CostTotal {
  double flops = 0;
  double bytes = 0;
  int launches = 0;
};
[[nodiscard]] CostTotal total_of(const StepCost& cost);
/// Returns the seconds of a step on each of `ranks` GPUs of one host.
[[nodiscard]] double step_seconds(const Card& card, const StepCost& cost, CostPrecision precision,
                                  int ranks);

/// `{flops, bytes, launches, kinds: [{kind, phase, calls, flops, bytes, launches}], cards: [{card,
/// checked, ms, images_per_second, shares: [fraction of the time, one per element of kinds]}]}`.
/// @param images per step per GPU
[[nodiscard]] nlohmann::ordered_json describe_cost(const StepCost& cost, CostPrecision precision,
                                                   const std::vector<const Card*>& cards, int ranks,
                                                   double images);
/// Every op: `{name, kind, phase, flops, bytes, launches}`, in the order of the step.
[[nodiscard]] nlohmann::ordered_json describe_ops(const StepCost& cost);

}  // namespace precast::tools
