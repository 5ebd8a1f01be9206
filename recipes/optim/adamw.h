#pragma once

#include <memory>
#include <vector>

#include "framework/api/model.h"
#include "framework/api/optimizer.h"

namespace precast::recipes {

/// AdamW (Loshchilov & Hutter, ICLR 2019) as torch.optim.AdamW, one fused kernel for each decay
/// group:
///   p *= 1 - lr * weight_decay;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
///   p -= lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
/// A parameter without gradient is left alone. When `found_inf` is set a step changes nothing, t
/// included. State: `<parameter>.exp_avg`, `<parameter>.exp_avg_sq`, `steps`.
///
/// Memory: two floats per parameter. Build it after the model is on its device.
/// @throws ConfigError for a beta outside [0, 1), epsilon <= 0, weight_decay < 0, Nesterov's
/// momentum, or an unknown decay_groups.
[[nodiscard]] std::unique_ptr<Optimizer> make_adamw(const std::vector<NamedTensor>& parameters,
                                                    const OptimizerOptions& options);

}  // namespace precast::recipes
