#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "framework/api/stateful.h"
#include "framework/core/registry.h"

namespace precast {

/// Updates parameters from their gradients. Owns its state (velocities, moments; tensors named
/// after the parameter, as "conv1.weight.momentum"), borrows the parameters' memory.
class Optimizer : public Stateful {
 public:
  /// What the gradient scaler knows when a step is taken in fp16.
  struct Scaled {
    /// Scalar float32: 1 if any gradient is Inf or NaN (the step must then change nothing).
    at::Tensor found_inf;
  };

  /// One update with the rate `lr`. Gradients are already unscaled.
  virtual void step(double lr, const std::optional<Scaled>& scaled) = 0;
};

/// The recipe's keys for optimisers.
struct OptimizerOptions {
  double momentum = 0.9;
  double weight_decay = 4e-5;
  bool nesterov = false;
  /// The highest rate of the schedule: what the decay of sgdw is relative to.
  double peak_lr = 0;
  /// adamw, lamb: decay rates of the moments.
  double beta1 = 0.9;
  double beta2 = 0.999;
  /// adamw, lamb, lars: what keeps their divisions finite.
  double epsilon = 1e-8;
  /// lars: the layer-wise rate is trust_coefficient * |weights| / (|gradient| + ...).
  double trust_coefficient = 0.001;
  /// Which parameters decay: `legacy` = all whose name does not contain "bn" (ffcv-imagenet: so
  /// downsample norms and biases decay too); `clean` = only tensors of two or more dimensions.
  std::string decay_groups = "legacy";
};

using OptimizerRegistry =
    Registry<Optimizer, const std::vector<NamedTensor>&, const OptimizerOptions&>;

}  // namespace precast
