#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>

#include "framework/api/optimizer.h"

namespace precast::recipes {

/// What adamw and lamb share: the decay rates of the moments and the count of steps, from which
/// the bias of moments that start at 0 is corrected (Kingma & Ba, ICLR 2015).
struct MomentRule {
  /// @param optimizer its name, for messages.
  /// @throws ConfigError for beta1 or beta2 outside [0, 1), epsilon <= 0, or Nesterov's momentum.
  MomentRule(std::string_view optimizer, const OptimizerOptions& options, at::Device device);

  /// Counts a step, unless it will be skipped.
  void advance(const std::optional<Optimizer::Scaled>& scaled);

  double beta1;
  double beta2;
  double epsilon;
  /// Scalar float32 on the parameters' device, since only the device knows which steps are skipped.
  /// One for all parameters: torch counts for each, which differs only for a parameter that has no
  /// gradient in some steps.
  at::Tensor steps;
};

}  // namespace precast::recipes
