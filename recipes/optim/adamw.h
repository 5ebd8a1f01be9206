#pragma once

#include <memory>

#include "framework/api/optimizer.h"
#include "recipes/optim/moment_rule.h"

namespace precast::recipes {

/// AdamW (Loshchilov & Hutter, ICLR 2019), like torch.optim.AdamW, with one call of a fused op for
/// each ParameterGroups::Group:
///   p *= 1 - lr * weight_decay;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
///   p -= lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
/// A parameter without a gradient is not changed. When `found_inf` is set, a step changes nothing,
/// not even t. State: `<parameter>.exp_avg`, `<parameter>.exp_avg_sq`, `steps`.
///
/// Memory: two floats per parameter. Create the optimiser after the model is on its device.
[[nodiscard]] std::unique_ptr<Optimizer> make_adamw(const OptimizerInputs& inputs,
                                                    const MomentOptions& options);

}  // namespace precast::recipes
