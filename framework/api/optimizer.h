#pragma once

#include <ATen/core/Tensor.h>

#include <limits>
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

  /// An update from gradients that are still multiplied by a scale and not clipped yet.
  struct ScaledStep {
    /// The parameters that have gradients, in the model's order.
    const std::vector<at::Tensor>& parameters;
    double lr = 0;
    /// Scalar float32 that replaces `lr`, as in step_with(); undefined: none. The tensors are on
    /// the parameters' device.
    at::Tensor lr_tensor{};
    /// Scalar float32, by which the gradients are divided; undefined: 1.
    at::Tensor scale{};
    /// The norm over all gradients to which they are then clipped, as by
    /// torch.nn.utils.clip_grad_norm_; infinite: no clipping.
    double max_norm = std::numeric_limits<double>::infinity();
    /// Scalar float32 that the optimiser writes: 1 if any gradient is Inf or NaN, in which case the
    /// step changes nothing else; otherwise 0. Undefined: gradients are not checked.
    at::Tensor found_inf{};
  };
  /// Unscales, checks, clips and updates in one call, if the optimiser has a faster way than
  /// separate passes over the gradients; the result is the same except for rounding. Never waits
  /// for the device, and can be recorded if takes_lr_tensor(). Gradients are only read, so they
  /// stay scaled.
  /// @return false, without having done anything, if it has no faster way for these parameters.
  [[nodiscard]] virtual bool step_scaled(const ScaledStep& /*step*/) { return false; }
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
