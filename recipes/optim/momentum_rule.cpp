#include "recipes/optim/momentum_rule.h"

#include <ATen/ops/_fused_sgd.h>
#include <fmt/format.h>

#include "framework/core/error.h"

namespace precast::recipes {

void MomentumOptions::options(Schema& schema) {
  schema.add("momentum", &momentum, "factor of the previous velocity").min(0).below(1);
  DecayOptions::options(schema);
  schema.add("nesterov", &nesterov, "use Nesterov momentum");
}

MomentumRule::MomentumRule(const MomentumOptions& options)
    : momentum_(options.momentum), nesterov_(options.nesterov) {
  if (nesterov_ && momentum_ == 0) {
    throw ConfigError(
        "optimizer.nesterov: expected momentum > 0, got 0. Set momentum, or nesterov to false");
  }
}

std::vector<std::string> MomentumRule::moments() const {
  if (momentum_ == 0) return {};
  return {"momentum"};
}

void MomentumRule::step(const ParameterGroups::Group& group, const Tensors& gradients, double lr,
                        double weight_decay, const std::optional<Optimizer::Scaled>& scaled) const {
  update(group, gradients, lr, weight_decay, scaled);
}

void MomentumRule::step(const ParameterGroups::Group& group, const Tensors& gradients,
                        const at::Tensor& lr, double weight_decay,
                        const std::optional<Optimizer::Scaled>& scaled) const {
  update(group, gradients, lr, weight_decay, scaled);
}

template <typename Rate>
void MomentumRule::update(const ParameterGroups::Group& group, const Tensors& gradients,
                          const Rate& lr, double weight_decay,
                          const std::optional<Optimizer::Scaled>& scaled) const {
  const at::TensorList velocities = group.moments.empty() ? at::TensorList() : group.moments[0];
  // Velocities start at 0, and 0 * momentum + g is g. So no parameter needs a special first step,
  // which would have to be repeated if it is skipped.
  at::_fused_sgd_(group.parameters, gradients, velocities, weight_decay, momentum_, lr,
                  /*dampening=*/0, nesterov_, /*maximize=*/false, /*is_first_step=*/false,
                  /*grad_scale=*/{}, found_inf(scaled));
}

}  // namespace precast::recipes
