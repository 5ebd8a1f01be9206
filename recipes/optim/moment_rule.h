#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "framework/api/optimizer.h"
#include "recipes/optim/parameter_groups.h"

namespace precast::recipes {

/// Options of adamw and lamb.
struct MomentOptions : DecayOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;

  void options(Schema& schema);
};

/// Code shared by adamw and lamb: the decay rates of the moments, and the number of steps, which is
/// needed to correct the bias of moments that start at 0 (Kingma & Ba, ICLR 2015).
struct MomentRule {
  MomentRule(const MomentOptions& options, at::Device device);

  /// Counts a step, unless it will be skipped.
  void advance(const std::optional<Optimizer::Scaled>& scaled);

  double beta1;
  double beta2;
  double epsilon;
  /// Scalar float32 on the parameters' device, since only the device knows which steps are skipped.
  /// One count for all parameters; torch has one per parameter, which differs only for a parameter
  /// that has no gradient in a step.
  at::Tensor steps;
};

}  // namespace precast::recipes
