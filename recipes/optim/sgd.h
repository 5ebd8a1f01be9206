#pragma once

#include <memory>
#include <vector>

#include "framework/api/model.h"
#include "framework/api/optimizer.h"

namespace precast::recipes {

/// Stochastic gradient descent with momentum as torch.optim.SGD (dampening 0), one fused kernel for
/// each decay group:
///   g = gradient + weight_decay * p;  v = momentum * v + g;  p -= lr * v
/// or, with Nesterov's momentum (Sutskever et al., ICML 2013), p -= lr * (g + momentum * v).
/// A parameter without gradient is left alone. When `found_inf` is set a step changes nothing.
/// State: `<parameter>.momentum`.
///
/// Memory: one float per parameter (none for momentum 0). Build it after the model is on its
/// device. @throws ConfigError for negative values, Nesterov without momentum, or a decay_groups
/// other than `legacy` and `clean`.
[[nodiscard]] std::unique_ptr<Optimizer> make_sgd(const std::vector<NamedTensor>& parameters,
                                                  const OptimizerOptions& options);

}  // namespace precast::recipes
