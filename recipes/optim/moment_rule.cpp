#include "recipes/optim/moment_rule.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "framework/core/error.h"

namespace precast::recipes {
namespace {

bool is_share(double beta) {
  return beta >= 0 && beta < 1;
}

}  // namespace

MomentRule::MomentRule(std::string_view optimizer, const OptimizerOptions& options,
                       at::Device device)
    : beta1(options.beta1),
      beta2(options.beta2),
      epsilon(options.epsilon),
      steps(at::zeros({}, at::device(device).dtype(at::kFloat))) {
  if (!is_share(beta1) || !is_share(beta2) || epsilon <= 0) {
    throw ConfigError(
        fmt::format("optimizer {}: expected beta1 and beta2 in [0, 1) and epsilon > 0, got beta1 "
                    "{}, beta2 {}, epsilon {}",
                    optimizer, beta1, beta2, epsilon));
  }
  if (options.nesterov) {
    throw ConfigError(fmt::format(
        "optimizer {}: expected nesterov false, got true. It belongs to sgd, sgdw and lars.",
        optimizer));
  }
}

void MomentRule::advance(const std::optional<Optimizer::Scaled>& scaled) {
  steps.add_(1);
  if (scaled) steps.sub_(scaled->found_inf);
}

}  // namespace precast::recipes
