#include "recipes/optim/moment_rule.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "framework/core/error.h"

namespace precast::recipes {

void MomentOptions::options(Schema& schema) {
  schema.add("beta1", &beta1, "decay rate of the moving average of the gradients").min(0).below(1);
  schema.add("beta2", &beta2, "decay rate of the moving average of their squares").min(0).below(1);
  schema.add("epsilon", &epsilon, "added to the denominator, to avoid a division by 0").above(0);
  DecayOptions::options(schema);
}

MomentRule::MomentRule(const MomentOptions& options, at::Device device)
    : beta1(options.beta1),
      beta2(options.beta2),
      epsilon(options.epsilon),
      steps(at::zeros({}, at::device(device).dtype(at::kFloat))) {}

void MomentRule::advance(const std::optional<Optimizer::Scaled>& scaled) {
  steps.add_(1);
  if (scaled) steps.sub_(scaled->found_inf);
}

}  // namespace precast::recipes
