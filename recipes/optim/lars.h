#pragma once

#include <memory>

#include "framework/api/optimizer.h"
#include "recipes/optim/momentum_rule.h"

namespace precast::recipes {

struct LarsOptions : MomentumOptions {
  /// Factor of the layer-wise rates, see make_lars().
  double trust_coefficient = 0.001;
  double epsilon = 1e-8;

  void options(Schema& schema);
};

/// Layer-wise adaptive rate scaling for large batches (You, Gitman & Ginsburg 2017), in the form of
/// the paper's algorithm 1 and MLPerf's reference, where the rate is part of the velocity:
///   r = trust_coefficient * |p| / (|g| + weight_decay * |p| + epsilon)
///   v = momentum * v + lr * r * (g + weight_decay * p);  p -= v
/// (Nesterov: p -= momentum * v + lr * r * (...)). r is 1 for tensors of fewer than two dimensions
/// (norms, biases), and if |p| or |g| is 0. With decay_groups `clean`, this is MLPerf's rule: no
/// decay and no adaptation for norms and biases.
///
/// A parameter without a gradient is not changed. When `found_inf` is set, a step changes nothing.
/// State: `<parameter>.momentum`. Memory: one float per parameter, and another one while a group is
/// updated.
/// @throws ConfigError like make_sgd().
[[nodiscard]] std::unique_ptr<Optimizer> make_lars(const OptimizerInputs& inputs,
                                                   const LarsOptions& options);

}  // namespace precast::recipes
