#include "recipes/optim/momentum_rule.h"

#include <ATen/ops/_fused_sgd.h>
#include <fmt/format.h>

#include "framework/core/error.h"

namespace precast::recipes {

MomentumRule::MomentumRule(std::string_view optimizer, const OptimizerOptions& options)
    : momentum_(options.momentum), nesterov_(options.nesterov) {
  if (options.momentum < 0) {
    throw ConfigError(
        fmt::format("optimizer {}: expected momentum >= 0, got {}", optimizer, options.momentum));
  }
  if (options.nesterov && options.momentum == 0) {
    throw ConfigError(
        fmt::format("optimizer {}: expected momentum > 0 with nesterov, got 0. Set momentum, or "
                    "nesterov to false.",
                    optimizer));
  }
}

std::vector<std::string> MomentumRule::moments() const {
  if (momentum_ == 0) return {};
  return {"momentum"};
}

void MomentumRule::step(const ParameterGroups::Group& group, const Tensors& gradients, double lr,
                        double weight_decay, const std::optional<Optimizer::Scaled>& scaled) const {
  const at::TensorList velocities = group.moments.empty() ? at::TensorList() : group.moments[0];
  // Velocities start at 0, and 0 * momentum + g is g: no parameter needs a first step of its own,
  // which a skipped step would have to undo.
  at::_fused_sgd_(group.parameters, gradients, velocities, weight_decay, momentum_, lr,
                  /*dampening=*/0, nesterov_, /*maximize=*/false, /*is_first_step=*/false,
                  /*grad_scale=*/{}, found_inf(scaled));
}

}  // namespace precast::recipes
