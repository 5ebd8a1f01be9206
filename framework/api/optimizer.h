#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "framework/api/stateful.h"
#include "framework/core/config/part.h"
#include "framework/core/error.h"

namespace precast {

/// Updates parameters from their gradients. Owns its state (velocities and moments, in tensors
/// named after the parameter, such as "conv1.weight.momentum") and borrows the parameters' memory.
class Optimizer : public Stateful {
 public:
  /// Information from the gradient scaler for the optimiser in an fp16 step.
  struct Scaled {
    /// Scalar float32: 1 if any gradient is Inf or NaN (the step must then change nothing).
    at::Tensor found_inf;
  };

  /// One update with the rate `lr`. Gradients are already unscaled.
  virtual void step(double lr, const std::optional<Scaled>& scaled) = 0;
  /// Whether there is a step_with(). If so, it launches the same work on the same memory each time,
  /// as long as the same parameters have gradients, so that a CUDA graph can record it.
  [[nodiscard]] virtual bool takes_lr_tensor() const { return false; }
  /// The same update, but the host never reads the rate.
  /// @param lr scalar float32 on the parameters' device.
  virtual void step_with(const at::Tensor& /*lr*/, const std::optional<Scaled>& /*scaled*/) {
    require(false, "only an optimiser that takes_lr_tensor() is called with one");
  }
};

/// The inputs from which every optimiser is made.
struct OptimizerInputs {
  /// The parameters that this rank updates, in the model's order. Borrowed during construction
  /// only.
  const std::vector<NamedTensor>& parameters;
  /// The schedule's highest rate.
  double peak_lr = 0;
};

using OptimizerRegistry = PartRegistry<Optimizer, const OptimizerInputs&>;

}  // namespace precast
