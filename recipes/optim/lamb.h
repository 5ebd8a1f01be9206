#pragma once

#include <memory>

#include "framework/api/optimizer.h"
#include "recipes/optim/moment_rule.h"

namespace precast::recipes {

/// Layer-wise adaptive moments for large batches (You et al., ICLR 2020), like timm's Lamb:
///   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///   u = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay * p
///   p -= lr * |p| / |u| * u
/// The ratio |p| / |u| is replaced by 1 if |p| or |u| is 0, and for tensors of fewer than two
/// dimensions (norms, biases), which therefore follow adamw. In timm's Lamb, the ratio is 1 for
/// parameters without weight decay, unless always_adapt is set; with decay_groups `clean` and a
/// weight_decay above 0, these are the same tensors. timm and NVIDIA also clip the norm of the
/// whole gradient to 1; the method gradient_clipping does this. The paper's and timm's epsilon is
/// 1e-6.
///
/// A parameter without a gradient is not changed. When `found_inf` is set, a step changes nothing,
/// not even t. State: `<parameter>.exp_avg`, `<parameter>.exp_avg_sq`, `steps`.
/// Memory: two floats per parameter, and three more while a group is updated.
[[nodiscard]] std::unique_ptr<Optimizer> make_lamb(const OptimizerInputs& inputs,
                                                   const MomentOptions& options);

}  // namespace precast::recipes
