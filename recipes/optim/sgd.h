#pragma once

#include <memory>

#include "framework/api/optimizer.h"
#include "recipes/detail/kernel_choice.h"
#include "recipes/optim/momentum_rule.h"

namespace precast::recipes {

struct SgdOptions : MomentumOptions, detail::KernelChoice {
  void options(Schema& schema);
};

/// Stochastic gradient descent with momentum, like torch.optim.SGD (dampening 0), with one call of
/// a fused op for each ParameterGroups::Group:
///   g = gradient + weight_decay * p;  v = momentum * v + g;  p -= lr * v
/// or, with Nesterov's momentum (Sutskever et al., ICML 2013), p -= lr * (g + momentum * v).
/// A parameter without a gradient is not changed. When `found_inf` is set, a step changes nothing.
/// State: `<parameter>.momentum`. With `kernels: fused`, FusedSgd updates all parameters if it
/// supports them, and can also unscale, check and clip the gradients.
///
/// Memory: one float per parameter (none for momentum 0). Create the optimiser after the model is
/// on its device. @throws ConfigError for Nesterov without momentum.
[[nodiscard]] std::unique_ptr<Optimizer> make_sgd(const OptimizerInputs& inputs,
                                                  const SgdOptions& options);

}  // namespace precast::recipes
