#pragma once

#include <memory>

#include "framework/api/optimizer.h"
#include "recipes/optim/momentum_rule.h"

namespace precast::recipes {

/// SGD with weight decay that is decoupled from the gradient (Loshchilov & Hutter, ICLR 2019), like
/// Composer's DecoupledSGDW: the decay depends on the schedule's shape, not on its peak.
///   p *= 1 - weight_decay * lr / peak_lr;  v = momentum * v + gradient;  p -= lr * v
/// (Nesterov as in sgd). So a weight_decay w of sgd corresponds to about peak_lr * w here.
/// State: `<parameter>.momentum`. Memory, gradients and `found_inf` as in sgd; one more pass over
/// the parameters with weight decay.
/// @throws ConfigError like make_sgd(), and for a peak_lr that is not above 0.
[[nodiscard]] std::unique_ptr<Optimizer> make_sgdw(const OptimizerInputs& inputs,
                                                   const MomentumOptions& options);

}  // namespace precast::recipes
