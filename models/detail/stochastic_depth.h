#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "framework/core/export.h"

namespace precast::models::detail {

/// How residual branches are dropped at random in training (Huang et al., ECCV 2016).
struct StochasticDepthOptions {
  double drop_rate = 0;
  /// Whether to draw for each sample instead of once per batch.
  bool per_sample = false;
  /// Whether block i of n, counted from 1, has the rate drop_rate * i / n instead of drop_rate.
  bool linear = true;
};

/// The drop rate of each block.
[[nodiscard]] PRECAST_API std::vector<double> drop_rates(const StochasticDepthOptions& options,
                                                         std::size_t blocks);

/// Drops a branch at random, like torchvision.ops.stochastic_depth in mode "row" (`per_sample`) or
/// "batch": a branch that is kept is divided by its probability of being kept. Draws from the
/// device's default generator, as torchvision does; with a rate of 0, draws nothing and returns
/// `branch`.
[[nodiscard]] PRECAST_API at::Tensor drop_branch(const at::Tensor& branch, double drop_rate,
                                                 bool per_sample);

}  // namespace precast::models::detail
